package launch

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

func TestWhoGotAnInterruptIsSeenByWhetherItEnded(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	must.Do(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if handles(cmd.Process.Pid, syscall.SIGINT) || gotIt(cmd.Process.Pid, syscall.SIGINT) {
		t.Error("it was sent none, and handles none")
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGINT))
	must.Do(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	if !gotIt(cmd.Process.Pid, syscall.SIGINT) {
		t.Error("it ended by it")
	}
}

func TestAProgramThatCatchesASignalOrIgnoresItHandlesIt(t *testing.T) {
	for _, trap := range []string{"trap : INT", "trap '' INT"} {
		cmd := exec.Command("sh", "-c", trap+"; echo ready; read -r _; :")
		in, err := cmd.StdinPipe()
		must.Do(t, err)
		out, err := cmd.StdoutPipe()
		must.Do(t, err)
		must.Do(t, cmd.Start())
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
