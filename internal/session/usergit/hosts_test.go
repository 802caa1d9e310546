package usergit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/plan"
	"claudebox/internal/session/usergit"
)

// ask lets the real git answer with the made configuration.
func ask(t *testing.T, access usergit.Access, env []string, question string, words ...string) string {
	t.Helper()
	home := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(home, ".gitconfig"), usergit.Make(usergit.Identity{}, usergit.Own{}, nil, access), 0o600))
	cmd := exec.CommandContext(t.Context(), "git", words...)
	cmd.Dir, cmd.Stdin = home, strings.NewReader(question)
	cmd.Env = append(env, "HOME="+home, "PATH="+os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false")
	out, _ := cmd.Output() // git fails where it gets no answer
	return string(out)
}

func TestTokensGoToTheirHostAlone(t *testing.T) {
	access := usergit.Access{Hosts: []plan.GitHost{
		{Host: "github.com", Variable: "GH"},
		{Host: "git.example.org:8443", Variable: "EX"},
		{Host: "gitlab.com", Variable: "GL"},
		{Host: "bitbucket.org", Variable: "UNSET"},
	}}
	env := []string{"GH=gh$(id)'\"%s\\n", "EX=ex", "GL=gl"}
	for question, want := range map[string]string{
		"https github.com":                "x-access-token gh$(id)'\"%s\\n",
		"https git.example.org:8443":      "x-access-token ex",
		"https gitlab.com":                "oauth2 gl",
		"https bitbucket.org":             "", // its variable is not set
		"https git.example.org":           "",
		"https github.com:8443":           "",
		"http github.com":                 "",
		"https github.com.example.org":    "",
		"https gist.github.com":           "",
		"https example.org":               "",
		"https github.com@example.org":    "",
		"https example.org/github.com":    "",
		"ssh github.com":                  "",
		"https github.com:443.attack.org": "",
	} {
		protocol, host, _ := strings.Cut(question, " ")
		answer := ask(t, access, env, "protocol="+protocol+"\nhost="+host+"\n\n", "credential", "fill")
		var user, password string
		for line := range strings.Lines(answer) {
			switch key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "="); key {
			case "username":
				user = value
			case "password":
				password = value
			}
		}
		if got := strings.TrimSpace(user + " " + password); got != want && (want != "" || password != "") {
			t.Errorf("%s: got %q, want %q", question, got, want)
		}
	}
}

func TestSSHRemotesAreWrittenAnew(t *testing.T) {
	access := usergit.Access{SSHToHTTPS: true, Hosts: []plan.GitHost{{Host: "git.example.org:8443", Variable: "EX"}}}
	for url, want := range map[string]string{
		"git@github.com:a/b.git":               "https://github.com/a/b.git",
		"ssh://git@github.com/a/b":             "https://github.com/a/b",
		"ssh://git@github.com:22/a/b":          "https://github.com/a/b",
		"ssh://git@ssh.github.com:443/a/b":     "https://github.com/a/b",
		"git@git.example.org:a/b":              "https://git.example.org:8443/a/b",
		"git@git.example.org.attack.org:a":     "git@git.example.org.attack.org:a",
		"git@elsewhere.org:a/b":                "git@elsewhere.org:a/b",
		"https://github.com/a/b":               "https://github.com/a/b",
		"ssh://git@github.com:2222/a/b":        "ssh://git@github.com:2222/a/b",
		"ssh://git@github.com.attack.org/a":    "ssh://git@github.com.attack.org/a",
		"ssh://git@git.example.org:22/a/b.git": "https://git.example.org:8443/a/b.git",
	} {
		if got := strings.TrimSpace(ask(t, access, nil, "", "ls-remote", "--get-url", url)); got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
	if got := ask(t, usergit.Access{}, nil, "", "ls-remote", "--get-url", "git@github.com:a"); got != "git@github.com:a\n" {
		t.Errorf("without the option: %s", got)
	}
}
