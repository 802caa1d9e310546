//go:build lab

package sandbox_test

import (
	"os/exec"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// As in a container: bwrap looks its child up in a /proc that shows processes 1
// and 2 and few others.
func TestEveryTierStartsWhereFewProcessesAreSeen(t *testing.T) {
	w := newWorld(t)
	for _, tier := range []string{"full", "inet", "allow", "none"} {
		wantEqual(t, succeed(t, w.contained(t, tier, "")), "it started\n")
	}
}

// As there, and the kernel's settings cannot be written, that of process numbers
// among them.
func TestEveryTierStartsWhereSettingsAreReadOnly(t *testing.T) {
	w := newWorld(t)
	for _, tier := range []string{"full", "inet", "allow", "none"} {
		for _, port := range [][]string{nil, {"--publish", "3000"}} {
			if tier == "full" && port != nil {
				continue
			}
			wantEqual(t, succeed(t, w.contained(t, tier, readOnly("kernel")+readOnly("net"), port...)), "it started\n")
		}
	}
}

// bwrap itself has to write one of them.
func TestWhereNoSettingCanBeWrittenItIsSaid(t *testing.T) {
	w := newWorld(t)
	for _, tier := range []string{"full", "inet"} {
		status, _, stderr := trial.Run(t, w.contained(t, tier, readOnly("")))
		if status == 0 || !strings.Contains(stderr, "a container keeps the kernel's settings from being written") {
			t.Errorf("%s: status %d: %s", tier, status, stderr)
		}
	}
}

// readOnly is how a folder of /proc/sys becomes read-only. Another /proc is left
// whole: the kernel lets nobody mount one who sees parts of it only.
func readOnly(folder string) string {
	folder = "/proc/sys/" + folder
	return "mkdir -p $HOME/.proc; mount -t proc proc $HOME/.proc; mount --bind " + folder + " " + folder +
		"; mount -o remount,bind,ro " + folder + "; "
}

// contained starts a session in a pid and a mount namespace, set up by a script. There is a process 2: else claudebox
// mounts a /proc of its own for bwrap.
func (w *world) contained(t *testing.T, tier, setUp string, flags ...string) *exec.Cmd {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	must.Do(t, err)
	file := w.profile(t, "nix: {daemon: off}", "network: {tier: allow, allow: [anthropic]}")
	cmd := w.session("echo it started", append(flags, "-P", file, "--network", tier)...)
	script := "set -e; sleep 1000 & " + setUp + `set +e; setpriv --ambient-caps -all --inh-caps -all "$@"; ` +
		`status=$?; kill $!; exit $status`
	words := []string{
		unshare, "--user", "--map-current-user", "--keep-caps", "--pid", "--fork", "--mount-proc",
		"bash", "-c", script, "bash", cmd.Path,
	}
	cmd.Path, cmd.Args = unshare, append(words, cmd.Args[1:]...)
	return cmd
}
