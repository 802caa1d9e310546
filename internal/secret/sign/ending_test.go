package sign

import (
	"net"
	"os"
	"os/exec"
	"testing"
)

// The user's agent was restarted: this process ends, and its successor has a connection to the new one.
func TestTheProcessEndsWithTheUsersAgent(t *testing.T) {
	const marker = "CLAUDEBOX_TEST_ENDING"
	if os.Getenv(marker) != "" {
		ours, theirs := net.Pipe()
		theirs.Close()
		_, _ = ending{ours}.Read(make([]byte, 1))
		os.Exit(0)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), marker+"=1")
	_ = cmd.Run()
	if status := cmd.ProcessState.ExitCode(); status != 1 {
		t.Errorf("it went on: status %d", status)
	}
}
