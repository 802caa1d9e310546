package launch

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"claudebox/checks/kit/must"
)

// The agent takes all files that this machine has, and the user types Ctrl-Z: what cannot be read counts as running, and
// the sandbox is killed. Unwatched it could read what the user changes.
func TestASandboxThatCannotBeReadDoesNotCountAsStopped(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	defer func() { _ = cmd.Process.Kill(); in.Close(); _ = cmd.Wait() }()
	var limit syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	got := frozen{}.stopAll(cmd.Process.Pid)
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if !errors.Is(got, errRestless) {
		t.Errorf("got %v", got)
	}
	if err := (frozen{}).stopAll(cmd.Process.Pid); err != nil {
		t.Errorf("one that can be read: %v", err)
	}
}
