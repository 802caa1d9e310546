//go:build lab

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// Each story of stories.txt: a command fails, and works once its remedy was followed, word for word.
func TestStoriesOfRemedies(t *testing.T) {
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			home := trial.Home(t, "cb-remedy-")
			shell := shellOf(t, home)
			if status, text := shell(s.given); status != 0 {
				t.Fatalf("given: status %d\n%s", status, text)
			}
			status, text := shell(s.run)
			_, remedy, said := strings.Cut(text, "claudebox: remedy: ")
			if !said { // `claudebox check --format json`
				_, remedy, said = strings.Cut(text, `"remedy": "`)
			}
			if !said { // it is a part of a message, or an answer of `claudebox why`
				remedy = text
			}
			t.Logf("remedy: %s", strings.TrimSpace(remedy))
			for _, says := range s.says {
				if status == 0 || !pattern(says).MatchString(remedy) {
					t.Fatalf("%s: status %d, no remedy says %q\n%s", s.run, status, says, text)
				}
			}
			if strings.Contains(text, "what the agent did last") {
				t.Errorf("no agent ran, and it is told what it did:\n%s", text)
			}
			if status, text := shell(s.do); status != 0 {
				t.Fatalf("%s: status %d\n%s", s.do, status, text)
			}
			if status, text := shell(s.then); status != 0 {
				t.Errorf("%s: status %d, after its remedy\n%s", s.then, status, text)
			}
		})
	}
}

// shellOf returns what runs a script of a user who has an agent, a project, and claudebox, which asks nobody.
func shellOf(t *testing.T, home string) func(script string) (status int, output string) {
	t.Helper()
	for name, content := range map[string]string{
		".local/bin/claude":    "#!/bin/sh\nexit 0\n",
		".local/bin/claudebox": "#!/bin/sh\nexec " + trial.Binary(t) + " -y \"$@\"\n",
		".local/bin/contained": `#!/bin/sh
exec unshare --user --map-current-user --keep-caps --mount bash -c \
	'eval "$1"; shift; exec setpriv --inh-caps=-all --ambient-caps=-all "$@"' contained "$@"
`,
		"project/README.md": "A project\n",
	} {
		must.Program(t, filepath.Join(home, name), content)
	}
	shell := func(script string) (int, string) {
		cmd := exec.CommandContext(t.Context(), "/bin/bash", "-c", "umask 022; "+script)
		cmd.Dir = filepath.Join(home, "project")
		cmd.Env = []string{
			"HOME=" + home, "USER=u", "TERM=xterm", "LANG=C.UTF-8", "PATH=" + home + "/.local/bin:/usr/bin:/bin",
			"x=" + home + "/.claudebox/profiles/x.yaml", "b=" + trial.Binary(t),
		}
		status, stdout, stderr := trial.Run(t, cmd)
		return status, stdout + stderr
	}
	const begin = `mkdir -p ~/.claudebox/profiles && chmod 700 ~/.claudebox && git init -q -b main && git add . &&
		git -c user.name=u -c user.email=u@x commit -qm first`
	if status, text := shell(begin); status != 0 {
		t.Fatal(text)
	}
	return shell
}
