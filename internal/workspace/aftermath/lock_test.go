package aftermath

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

// Another claudebox may be stopped while it has the lock of the memory: who waits for it is told which folder it is.
func TestTheLockOfTheMemoryIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	folder := filepath.Join(home, memoryFolder)
	must.Do(t, os.Mkdir(folder, privateDir))
	other, err := os.Open(folder)
	must.Do(t, err)
	defer other.Close()
	must.Do(t, unix.Flock(int(other.Fd()), unix.LOCK_EX))
	err = remember(home, "names", func([]string) []string { return []string{"new"} })
	if err == nil || !strings.Contains(err.Error(), "lock "+folder) {
		t.Errorf("got %v", err)
	}
}
