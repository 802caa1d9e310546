package state

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestASourceThatWasJustChangedIsReadAgain: a second edit in the same tick of the kernel's clock, of the same size, would
// stay unseen for good.
func TestASourceThatWasJustChangedIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "CLAUDE.md")
	for range 100 { // a busy machine may take longer than a moment
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		just := hashInputs("key", []string{file})
		time.Sleep(25 * time.Millisecond)
		if later := hashInputs("key", []string{file}); later != just && later == hashInputs("key", []string{file}) {
			return
		}
	}
	t.Error("it has the same hash a moment later")
}
