package state

import (
	"path/filepath"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// TestASourceThatWasJustChangedIsReadAgain: a second edit in the same tick of the kernel's clock, of the same size, would
// stay unseen for good.
func TestASourceThatWasJustChangedIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "CLAUDE.md")
	for range 100 { // a busy machine may take longer than a moment
		must.Write(t, file, "x")
		just := hashInputs("key", []string{file})
		time.Sleep(25 * time.Millisecond)
		if later := hashInputs("key", []string{file}); later != just && later == hashInputs("key", []string{file}) {
			return
		}
	}
	t.Error("it has the same hash a moment later")
}
