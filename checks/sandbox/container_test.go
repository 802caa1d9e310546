//go:build lab

package sandbox_test

import (
	"os/exec"
	"testing"
)

// As in a container: bwrap looks its child up in a /proc that shows processes 1
// and 2 and few others.
func TestEveryTierStartsWhereFewProcessesAreSeen(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	file := w.profile(t, "nix: {daemon: off}", "network: {tier: allow, allow: [anthropic]}")
	for _, tier := range []string{"full", "inet", "allow", "none"} {
		cmd := w.session("echo it started", "-P", file, "--network", tier)
		words := []string{
			unshare, "--user", "--map-current-user", "--pid", "--fork", "--mount-proc",
			"bash", "-c", `sleep 1000 & "$@"; status=$?; kill $!; exit $status`, "bash", cmd.Path,
		}
		cmd.Path, cmd.Args = unshare, append(words, cmd.Args[1:]...)
		wantEqual(t, succeed(t, cmd), "it started\n")
	}
}
