package project

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/survey"
)

// TestAFileThatIsWrittenWhileItIsSearchedIsSearchedAgain: it was written a moment before the walk, and again in the same
// tick of the kernel's clock, when the first piece of it was searched. A search may take longer than a tick.
func TestAFileThatIsWrittenWhileItIsSearchedIsSearchedAgain(t *testing.T) {
	dir, err := beneath.Canonical(t.TempDir())
	must.Do(t, err)
	must.Write(t, filepath.Join(dir, "a"), "")
	at, err := beneath.Open(dir)
	must.Do(t, err)
	defer at.Close()
	what, err := at.Look("a")
	must.Do(t, err)
	fd, err := at.OpenFD("a", 0)
	must.Do(t, err)
	defer os.NewFile(uintptr(fd), "a").Close()
	time.Sleep(30 * time.Millisecond)
	f := survey.File{Rel: "a", Stamp: what.Stamp}
	for since, want := range map[time.Duration]bool{time.Millisecond: false, time.Second: true, -time.Hour: false} {
		l := lender{at: at, began: time.Unix(0, what.Stamp.Change).Add(since)}
		if got := l.isSettled(fd, f); got != want {
			t.Errorf("a walk %v after the change: settled %t", since, got)
		}
	}
}
