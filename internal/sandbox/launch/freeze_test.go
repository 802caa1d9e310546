package launch

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
)

// The agent takes all files that this machine has, and the user types Ctrl-Z: what cannot be read counts as running, and
// the sandbox is killed. Unwatched it could read what the user changes.
func TestASandboxThatCannotBeReadDoesNotCountAsStopped(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); in.Close(); _ = cmd.Wait() }()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	got := frozen{}.stopAll(cmd.Process.Pid)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(got, errRestless) {
		t.Errorf("got %v", got)
	}
	if err := (frozen{}).stopAll(cmd.Process.Pid); err != nil {
		t.Errorf("one that can be read: %v", err)
	}
}
