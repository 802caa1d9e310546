package launch

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhoGotAnInterruptIsSeenByWhetherItEnded(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if handles(cmd.Process.Pid, syscall.SIGINT) || gotIt(cmd.Process.Pid, syscall.SIGINT) {
		t.Error("it was sent none, and handles none")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if !gotIt(cmd.Process.Pid, syscall.SIGINT) {
		t.Error("it ended by it")
	}
}

func TestAProgramThatCatchesASignalOrIgnoresItHandlesIt(t *testing.T) {
	for _, trap := range []string{"trap : INT", "trap '' INT"} {
		cmd := exec.Command("sh", "-c", trap+"; echo ready; read -r _; :")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 16)); err != nil {
			t.Error(err)
		}
		if !handles(cmd.Process.Pid, syscall.SIGINT) {
			t.Errorf("%s: not seen", trap)
		}
		in.Close()
		_ = cmd.Wait()
	}
}
