package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent"
)

// TestProgramsOfThisHostRunWithTheirMountsAlone puts programs that are
// installed here into a sandbox that holds what Find says, and nothing else.
func TestProgramsOfThisHostRunWithTheirMountsAlone(t *testing.T) {
	if out, err := exec.Command("bwrap", "--ro-bind", "/", "/", "--unshare-user", "true").CombinedOutput(); err != nil {
		t.Skipf("skipped: bwrap cannot make a sandbox here: %v: %s", err, out)
	}
	for name, words := range map[string][]string{
		"claude": {"--version"},
		"node":   {"--eval", "require('https')"},
		"npm":    {"--version"},
		"git":    {"--version"},
		"perl":   {"-e", "use POSIX"},
	} {
		t.Run(name, func(t *testing.T) {
			where, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("skipped: no %s here", name)
			}
			if root, err := os.Stat("/"); err != nil || root.Sys().(*syscall.Stat_t).Uid != 0 {
				t.Skip("NOT RUN: / is not root's, as in a build of Nix, so that no program can be trusted")
			}
			program, err := agent.Find(agent.Request{
				Name: name, Path: filepath.Dir(where), Project: t.TempDir(), UID: os.Getuid(), GID: os.Getgid(),
			})
			must.Do(t, err)
			sandbox := []string{"--unshare-user", "--unshare-pid", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--clearenv", "--setenv", "HOME", "/tmp"}
			if program.Store {
				sandbox = append(sandbox, "--ro-bind", "/nix/store", "/nix/store")
			}
			sandbox = append(sandbox, bwrapWords(program.Mounts)...)
			cmd := exec.Command("bwrap", slices.Concat(sandbox, []string{"--", program.Path}, program.Args, words)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s\n%q", err, out, cmd.Args)
			}
		})
	}
}

func bwrapWords(mounts []agent.Mount) []string {
	var words []string
	for _, m := range mounts {
		words = append(words, "--"+kind(m), m.Source, m.Destination)
	}
	return words
}

// BenchmarkFind finds the agent that is on PATH here: 377 MB cost what 1 MB
// does, since only headers are read.
func BenchmarkFind(b *testing.B) {
	r := agent.Request{Name: "claude", Path: os.Getenv("PATH"), Project: b.TempDir(), UID: os.Getuid(), GID: os.Getgid()}
	if _, err := agent.Find(r); err != nil {
		b.Skip("skipped: ", err)
	}
	for b.Loop() {
		if _, err := agent.Find(r); err != nil {
			b.Fatal(err)
		}
	}
}
