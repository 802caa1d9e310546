// Package realgit runs the real git, for tests that compare with it or need a repository.
package realgit

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// Run runs git in a folder, with no configuration and environment but what the
// test gives, and returns its output; ok is false when git refused.
func Run(t *testing.T, dir string, env []string, args ...string) (out string, ok bool) {
	t.Helper()
	raw, err := command(t, dir, env, args).Output()
	return string(raw), err == nil
}

// Told is as [Run], with what git says on standard error.
func Told(t *testing.T, dir string, env []string, args ...string) (out string, ok bool) {
	t.Helper()
	raw, err := command(t, dir, env, args).CombinedOutput()
	return string(raw), err == nil
}

// someone makes the commits of [Do].
var someone = []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x"}

// Do is as [Told], with somebody for the commits, and ends the test when git refuses.
func Do(t testing.TB, dir string, env []string, args ...string) (out string) {
	t.Helper()
	raw, err := command(t, dir, slices.Concat(someone, env), args).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, raw)
	}
	return string(raw)
}

func command(t testing.TB, dir string, env, args []string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("NOT RUN: the comparison with the real git needs git on PATH")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"GIT_CONFIG_NOSYSTEM=1", "PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, env...)
	return cmd
}

// List is what git reads in a configuration: "KEY\nVALUE", or "KEY" alone. ok is
// false when git refused it.
func List(t *testing.T, config []byte) (entries []string, ok bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	must.Do(t, os.WriteFile(file, config, 0o600))
	out, ok := Run(t, t.TempDir(), nil, "config", "--null", "--file", file, "--list")
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), ok
}
