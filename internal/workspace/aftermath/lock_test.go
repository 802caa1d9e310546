package aftermath

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Another claudebox may be stopped while it has the lock of the memory: who waits for it is told which folder it is.
func TestTheLockOfTheMemoryIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	folder := filepath.Join(home, memoryFolder)
	if err := os.Mkdir(folder, privateDir); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	err = remember(home, "names", func([]string) []string { return []string{"new"} })
	if err == nil || !strings.Contains(err.Error(), "lock "+folder) {
		t.Errorf("got %v", err)
	}
}
