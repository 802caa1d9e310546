//go:build lab

package sandbox_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// What `claudebox why` answers is what a program inside finds.
func TestWhyTellsTheTruth(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	files := []string{
		"project/README.md", "project/.env", "project/.envrc", "project/sub/.env.local",
		"data/file", "data/deep/file", "single", "music/file", ".ssh/id", ".aws/credentials", ".bashrc", ".cache/mine", ".claude/settings.json",
		"beside/project/file",
	}
	for _, name := range files {
		if name != "project/README.md" {
			w.write(t, name, `{"`+canary+`":"`+name+`"}`+"\n")
		}
	}
	w.link(t, "../data", "project/linked")
	w.env["SECRET_TOKEN"], w.env["PLAIN"], w.env["LET_IN"] = canary, "x", "y"
	flags := []string{"--profile", w.profile(t, "extra_env_passthrough: [LET_IN]", "mounts: [{host: ~/single, sandbox: /mnt/single}]", "show: [single]"), "--mount-ro", "~/data"}
	for _, name := range files {
		path := w.path(name)
		want := strings.TrimSpace(w.inside(t, fmt.Sprintf(`if grep -rqs -F %[1]q / --include=%[2]q --exclude-dir=proc --exclude-dir=nix --exclude-dir=sys; then echo yes; else echo no; fi`,
			content(t, w, name), base(name)), flags...))
		got := w.why(t, want, append(flags[:len(flags):len(flags)], path)...)
		if !strings.HasPrefix(got, want+":") {
			t.Errorf("%s: inside %s, but\n%s", name, want, got)
		}
	}
	for _, name := range []string{"SECRET_TOKEN", "PLAIN", "LET_IN", "HOME", "PATH", "ANTHROPIC_API_KEY", "EDITOR", "CLAUDEBOX"} {
		want := strings.TrimSpace(w.inside(t, fmt.Sprintf(`if test -n "${%s+x}"; then echo yes; else echo no; fi`, name), flags...))
		got := w.why(t, want, append(flags[:len(flags):len(flags)], name)...)
		if !strings.HasPrefix(got, want+":") || strings.Contains(got, canary) {
			t.Errorf("%s: inside %s, but\n%s", name, want, got)
		}
	}
	for tier, want := range map[string]string{"full": "yes:", "none": "no:"} {
		if got := w.why(t, strings.TrimSuffix(want, ":"), "--network", tier, "192.0.2.1:80"); !strings.HasPrefix(got, want) {
			t.Errorf("tier %s: %s", tier, got)
		}
	}
	wantRefused(t, run(t, w.claudebox("why")), "takes a path, a variable, a program or a host, but got none")
	wantRefused(t, run(t, w.claudebox("why", "a:b:c")), "it is no path, no variable, and no host with a port")
}

// What a variable has moved is as secret there as at its usual place, and the way in that is named leads in.
func TestWhyKnowsWhereVariablesLead(t *testing.T) {
	for variable, file := range map[string]string{
		"CODEX_HOME": "auth.json", "KUBECONFIG": "", "CLAUDE_CONFIG_DIR": "settings.json", "CLAUDEBOX_HOME": "x", "HF_HOME": "token",
	} {
		w := newWorldHere(t)
		w.write(t, filepath.Join("moved", file), `{"`+canary+`":1}`)
		w.env[variable] = w.path("moved")
		got := w.why(t, "no", w.path("moved/"+file))
		if !strings.Contains(oneLine(got), "mode: ro, secret: true") {
			t.Errorf("%s: %s", variable, got)
		}
		wantRefused(t, run(t, w.session("true", "--mount-ro", filepath.Join("~/moved", file))), "secret: true")
	}
}

// why is what `claudebox why` answers, with the status that says the same.
func (w *world) why(t *testing.T, want string, words ...string) string {
	t.Helper()
	got := run(t, w.claudebox(append([]string{"why"}, words...)...))
	if status := map[string]int{"yes": 0, "no": 1, "unknown": 2}[want]; got.status != status || got.stderr != "" {
		t.Errorf("%q: status %d, want %d; %s%s", words, got.status, status, got.stdout, got.stderr)
	}
	return got.stdout
}

// U17: what is not there is not inside, and a bare word is no host.
func TestWhySaysWhatItCannotKnow(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct{ word, answer, says string }{
		{"./nosuch", "unknown", "is not there; what is made there is inside"},
		{"~/music/nosuch", "no", "is not inside"},
		{"nosuchtool", "unknown", "is no program inside"},
		{"docker", "no", "is of no use inside"},
		{"git", "yes", "is a program inside, /nix/store/"},
		{"docker.com", "yes", "docker.com is reached"},
		{"db:5432", "yes", "db:5432 is reached"},
		{"localhost", "yes", "is reached"},
	} {
		if got := w.why(t, tc.answer, tc.word); !strings.Contains(oneLine(got), tc.says) {
			t.Errorf("%s: %s", tc.word, got)
		}
	}
}

// U11: what is no list of names was left out in silence.
func TestNamesOfVariablesThatAreNoneAreRefused(t *testing.T) {
	w := newWorld(t)
	w.env["A"], w.env["B"] = "1", "2"
	for _, list := range []string{"A B", "A=1", "$A", "A,1B"} {
		w.env["CLAUDEBOX_EXTRA_ENV"] = list
		wantRefused(t, run(t, w.session("true")), "is not the name of a variable")
	}
	w.env["CLAUDEBOX_EXTRA_ENV"] = "A, B,UNSET"
	wantEqual(t, w.inside(t, `echo "$A$B"`), "12\n")
	if got := oneLine(run(t, w.claudebox("plan")).stdout); !strings.Contains(got, "UNSET of CLAUDEBOX_EXTRA_ENV is not set here") {
		t.Errorf("not said: %s", got)
	}
}

// content is a line by which a file is known.
func content(t *testing.T, w *world, name string) string {
	t.Helper()
	first, _, _ := strings.Cut(w.read(t, name), "\n")
	return first
}

func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
