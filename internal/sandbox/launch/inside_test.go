package launch

import (
	"bufio"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"claudebox/internal/linux/proctree"
)

// TestASandboxIsEmptyOnlyWhenNobodyIsLeft has shells play bwrap's monitor and
// its process 1, which has a child of its own.
func TestASandboxIsEmptyOnlyWhenNobodyIsLeft(t *testing.T) {
	monitor := exec.Command("sh", "-c", `exec 3<&0; sh -c 'sleep 60 & echo there; wait; read end <&3' & wait`)
	stdin, err := monitor.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := monitor.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	monitor.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := monitor.Start(); err != nil {
		t.Fatal(err)
	}
	defer monitor.Wait()
	defer syscall.Kill(-monitor.Process.Pid, syscall.SIGKILL)
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	empty := func() bool {
		s := sandbox{inside: openInside(monitor.Process.Pid)}
		if s.inside == nil {
			t.Fatal("process 1 is not found")
		}
		defer s.inside.Close()
		return s.empty()
	}
	if empty() {
		t.Error("empty while a process runs")
	}
	agent := proctree.Agent(proctree.Agent(monitor.Process.Pid))
	if agent == 0 {
		t.Fatal("the process is not found") // 0 would be everybody of our group
	}
	syscall.Kill(agent, syscall.SIGKILL)
	for n := 0; !empty(); n++ {
		if n == 200 {
			t.Fatal("never empty")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if (&sandbox{}).empty() {
		t.Error("empty although nothing is known")
	}
}
