package nstest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"claudebox/internal/network/netns"
)

// Start starts a command in a network and a user namespace of its own, and
// ends it with the test. Where this user may have none, the test is skipped.
func Start(t testing.TB, cmd *exec.Cmd) netns.Namespace {
	t.Helper()
	one := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
		UidMappings: one(os.Getuid()), GidMappings: one(os.Getgid()),
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no user namespaces here: %v", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	ns, err := netns.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Close)
	return ns
}

// Waiting is the namespace of a process that does nothing, and its pid.
func Waiting(t testing.TB) (ns netns.Namespace, pid int) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	return Start(t, cmd), cmd.Process.Pid
}
