package capture_test

import (
	"os/exec"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/capture"
)

// A program that prints without end must not fill the memory, by whichever way os/exec hands on what it prints.
func TestAProgramThatPrintsTooMuchIsCut(t *testing.T) {
	for printed, over := range map[string]bool{"99999": false, "100000": false, "100001": true, "3000000": true} {
		h := &capture.Head{Most: 100_000}
		cmd := exec.Command("head", "-c", printed, "/dev/zero")
		cmd.Stdout = h
		must.Do(t, cmd.Run())
		if h.Over != over || len(h.Bytes()) > h.Most {
			t.Errorf("of %s bytes %d were kept, over %t", printed, len(h.Bytes()), h.Over)
		}
	}
}
