package usergit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/realgit"
	"claudebox/internal/session/usergit"
	"claudebox/internal/workspace/gitconfig"
)

func allInside(string) string { return "" }

// noneOf says of commands with one of these words that they cannot run.
func noneOf(words ...string) func(string) string {
	return func(command string) string {
		for _, word := range words {
			if strings.Contains(command, word) {
				return word + " is not inside: add its package"
			}
		}
		return ""
	}
}

// carry makes the configuration inside of a user's.
func carry(t *testing.T, user, local string, missing func(string) string) (usergit.Own, string) {
	t.Helper()
	src := usergit.Sources{Files: []string{"f"}, ReadFile: func(string) ([]byte, error) { return []byte(user), nil }}
	id, err := usergit.Pick(src, lookup(nil))
	must.Do(t, err)
	entries, err := gitconfig.Parse([]byte(local))
	must.Do(t, err)
	own := usergit.Carry(id, entries, missing)
	return own, string(usergit.Make(usergit.Identity{Name: "A", Email: "a@x"}, own, nil, usergit.Access{}))
}

// D4: what decides the content of a commit works inside, or git refuses: the real git is asked, with what the user has
// and the sandbox has not.
func TestGitRefusesWhereAFilterIsMissing(t *testing.T) {
	const attributes = "*.x filter=up merge=ours2\n"
	for name, tc := range map[string]struct {
		user, local string
		missing     func(string) string
		want        string // what the commit holds; empty: there is none
		says        string
	}{
		"a filter that works":              {user: "[filter \"up\"]\nclean = tr a-z A-Z\n", missing: allInside, want: "C"},
		"the same, required":               {user: "[filter \"up\"]\nclean = tr a-z A-Z\nsmudge = cat\nrequired\n", missing: allInside, want: "C"},
		"a program that is not there":      {user: "[filter \"up\"]\nclean = no-such-up -- %f\n", missing: noneOf("no-such-up"), says: "claudebox: filter.up.clean: no-such-up is not inside: add its package"},
		"a process":                        {user: "[filter \"up\"]\nprocess = no-such-up\nclean = no-such-up\n", missing: noneOf("no-such-up"), says: "claudebox: filter.up.process: no-such-up is not inside"},
		"one that fails, though it starts": {user: "[filter \"up\"]\nclean = \"cat; false\"\n", missing: allInside, says: "clean filter 'up' failed"},
		"one of the repository":            {local: "[filter \"up\"]\nclean = no-such-up\n", missing: allInside, says: "clean filter 'up' failed"},
		"one with odd signs":               {user: "[filter \"up\"]\nclean = \"no-such-up '%f' \\\"$X\\\" 100%%\"\n", missing: noneOf("no-such-up"), says: "filter.up.clean"},
		"an empty one":                     {user: "[filter \"up\"]\nclean =\n", missing: allInside, want: "c"},
		"line ends":                        {user: "[core]\nautocrlf = input\n", missing: allInside, want: "c"},
		"line ends that git refuses":       {user: "[core]\nautocrlf = input\nsafecrlf = true\n", missing: allInside, says: "CRLF would be replaced by LF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, made := carry(t, tc.user, tc.local, tc.missing)
			home, repo := world{files: map[string]string{".gitconfig": made}}.build(t)
			env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
			must.Write(t, filepath.Join(repo, ".gitattributes"), attributes)
			content := "c\n"
			if strings.Contains(name, "line ends") {
				content = "c\r\n"
			}
			must.Write(t, filepath.Join(repo, "f.x"), content)
			if tc.local != "" {
				file, err := os.OpenFile(filepath.Join(repo, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
				must.Do(t, err)
				file.WriteString(tc.local)
				file.Close()
			}
			out, _ := realgit.Told(t, repo, env, "add", "-A")
			staged, ok := realgit.Run(t, repo, env, "cat-file", "-p", ":f.x")
			if !ok {
				staged = ""
			}
			if strings.TrimSpace(staged) != tc.want || !strings.Contains(out, tc.says) {
				t.Errorf("staged %q, said %q; want %q, %q\n%s", staged, out, tc.want, tc.says, made)
			}
		})
	}
}

// Once its program is there, as by `nix shell`, a filter works.
func TestAFilterWorksOnceItsProgramIsThere(t *testing.T) {
	_, made := carry(t, "[filter \"up\"]\nclean = my-up -x %f\n", "", noneOf("my-up"))
	home, repo := world{files: map[string]string{".gitconfig": made, "bin/my-up": "#!/bin/sh\ntr a-z A-Z\n"}}.build(t)
	must.Do(t, os.Chmod(filepath.Join(home, "bin/my-up"), 0o700))
	for name, content := range map[string]string{".gitattributes": "*.x filter=up\n", "f.x": "c\n"} {
		must.Write(t, filepath.Join(repo, name), content)
	}
	env := []string{"HOME=" + home, "PATH=" + home + "/bin:" + os.Getenv("PATH")}
	out, _ := realgit.Told(t, repo, env, "add", "-A")
	if staged, _ := realgit.Run(t, repo, env, "cat-file", "-p", ":f.x"); staged != "C\n" {
		t.Errorf("staged %q, said %q", staged, out)
	}
}

// A merge driver that is missing must not become git's own merge, nor a conflict.
func TestGitRefusesAMergeWhoseDriverIsMissing(t *testing.T) {
	own, made := carry(t, "[merge \"ours2\"]\ndriver = no-such-driver %O %A %B\n[diff \"x\"]\ntextconv = no-such-driver\n", "", noneOf("no-such-driver"))
	if len(own.Refuses) != 1 || strings.Join(own.Left, " ") != "diff.*.textconv" {
		t.Errorf("got %+v", own)
	}
	home, repo := world{files: map[string]string{".gitconfig": made}}.build(t)
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	step := func(content string, words ...string) {
		must.Write(t, filepath.Join(repo, "f.x"), content)
		for _, line := range words {
			if out, ok := realgit.Run(t, repo, env, strings.Fields(line)...); !ok {
				t.Fatalf("%s: %s", line, out)
			}
		}
	}
	must.Write(t, filepath.Join(repo, ".gitattributes"), "*.x merge=ours2\n")
	step("a\n1\n2\n3\n4\n5\nb\n", "add -A", "commit -qm one", "branch side")
	step("A\n1\n2\n3\n4\n5\nb\n", "commit -qam two", "switch -q side")
	step("a\n1\n2\n3\n4\n5\nB\n", "commit -qam three")
	out, ok := realgit.Told(t, repo, env, "merge", "-q", "-")
	if ok || !strings.Contains(out, "claudebox: merge.ours2.driver: no-such-driver is not inside") {
		t.Errorf("ok %v: %s", ok, out)
	}
}

// Secrets, programs that are only shown, and paths of this machine stay outside, and are named.
func TestWhatMustNotEnterOfGitsConfigurationIsNamed(t *testing.T) {
	own, made := carry(t, `[core]
	editor = vim
	sshCommand = ssh -i KEY
	autocrlf = input
[alias]
	st = status
	pub = !no-such push
	leak = "!curl -H 'Authorization: Bearer ghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO'"
[http]
	proxy = http://u:password@proxy:1
[lfs]
	url = https://u:password@lfs.example/x
[github]
	token = canary
[push]
	default = simple
`, "", noneOf("no-such"))
	for _, word := range []string{"password", "ghp_", "canary", "vim", "KEY"} {
		if strings.Contains(made, word) {
			t.Errorf("%s enters:\n%s", word, made)
		}
	}
	expect.Contains(t, made, "autocrlf", "st = \"status\"", "https://lfs.example/x", `default = "simple"`)
	if got, want := strings.Join(own.Left, " "), "alias.* core.editor core.sshcommand github.token http.proxy"; got != want {
		t.Errorf("named are %q, want %q", got, want)
	}
}
