//go:build lab

package attacks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// canary is what no sandbox may show.
const canary = "CANARY-of-the-user"

// world is a user with a home, a secret in it and a project.
type world struct {
	t             *testing.T
	home, project string
	env           []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	home := trial.Home(t, "cb-attacks-")
	w := &world{t: t, home: home, project: filepath.Join(home, "project")}
	w.env = []string{"HOME=" + home, "USER=someone", "PATH=" + home + "/.local/bin:/usr/bin:/bin", "TERM=xterm", "LANG=C.UTF-8"}
	w.folder("project")
	w.write(".local/bin/claude", "#!/bin/sh\nexec echo \"$@\"\n")
	must.Do(t, os.Chmod(w.path(".local/bin/claude"), 0o755))
	w.write(".ssh/id_ed25519", canary)
	w.write("documents/letter", canary)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.home, name) }

func (w *world) folder(name string) {
	w.t.Helper()
	must.Do(w.t, os.MkdirAll(w.path(name), 0o755))
}

func (w *world) write(name, content string) {
	w.t.Helper()
	name = w.path(name)
	must.Write(w.t, name, content)
}

func (w *world) link(target, name string) {
	w.t.Helper()
	name = w.path(name)
	must.Do(w.t, os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(target, name))
}

func (w *world) read(name string) string {
	w.t.Helper()
	return must.Read(w.t, w.path(name))
}

func (w *world) exists(name string) bool {
	_, err := os.Lstat(w.path(name))
	return err == nil
}

// in is the same user in another folder.
func (w *world) in(project string) *world {
	w.t.Helper()
	other := *w
	other.project = w.path(project)
	w.folder(project)
	return &other
}

// with is the same user with another environment.
func (w *world) with(env ...string) *world {
	other := *w
	other.env = slices.Concat(env, w.env) // the first of two counts
	return &other
}

// outcome is what a run left.
type outcome struct {
	status         int
	stdout, stderr string
}

// run runs a program of the host in the project.
func (w *world) run(stdin *os.File, program string, words ...string) outcome {
	w.t.Helper()
	cmd := exec.Command(program, words...)
	cmd.Dir, cmd.Env = w.project, w.env
	if stdin != nil {
		cmd.Stdin = stdin
	}
	status, stdout, stderr := trial.Run(w.t, cmd)
	return outcome{status, stdout, stderr}
}

func (w *world) claudebox(words ...string) outcome {
	w.t.Helper()
	return w.run(nil, trial.Binary(w.t), words...)
}

// attack runs a script in a sandbox, whatever becomes of it.
func (w *world) attack(script string, flags ...string) outcome {
	w.t.Helper()
	return w.claudebox(slices.Concat([]string{"shell", "--yes", "--no-report"}, flags, []string{"--", "bash", "-uc", script})...)
}

// prepared runs a script that has to succeed: what an earlier session did.
func (w *world) prepared(script string, flags ...string) {
	w.t.Helper()
	if got := w.attack("set -e\n"+script, flags...); got.status != 0 {
		w.t.Fatalf("the attack cannot be prepared: status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}

// profile writes a profile outside the project, and returns the flags for it.
func (w *world) profile(lines ...string) []string {
	w.t.Helper()
	w.write("profile.yaml", "name: test\nextends: default\n"+strings.Join(lines, "\n")+"\n")
	return []string{"--profile", w.path("profile.yaml")}
}

// wantNoCanary is for an attack that wants a secret.
func (w *world) wantNoCanary(got outcome) {
	w.t.Helper()
	if strings.Contains(got.stdout+got.stderr, canary) {
		w.t.Errorf("the secret was read\n%s", got)
	}
}

// wantRefused is for a launch that must not happen.
func (w *world) wantRefused(got outcome, reason string) {
	w.t.Helper()
	if got.status != 125 || !strings.Contains(got.stderr, reason) || !strings.Contains(got.stderr, "remedy: ") {
		w.t.Errorf("want a refusal that says %q\n%s", reason, got)
	}
}

func (o outcome) String() string {
	return fmt.Sprintf("status %d\nstdout: %s\nstderr: %s", o.status, o.stdout, o.stderr)
}
