package watch_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/watch"
)

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	inner, absent := filepath.Join(dir, "inner"), filepath.Join(dir, "absent")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 10)
	w := watch.Start(watch.Request{
		Folders: func() []string { return []string{absent, dir, inner} },
		Events:  unix.IN_CREATE | unix.IN_MOVE_SELF,
		See:     func(path string) { told <- "saw " + path },
		Moved:   func(folder string) { told <- "moved " + folder },
		Failed:  func(folder string, _ error) { told <- "failed " + folder },
	})
	want := func(text string) {
		t.Helper()
		select {
		case got := <-told:
			if got != text {
				t.Errorf("told %q, want %q", got, text)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("not told %q", text)
		}
	}
	want("failed " + absent)
	want("saw ")
	if err := os.WriteFile(filepath.Join(inner, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want("saw " + filepath.Join(inner, "a"))
	if err := os.Rename(inner, filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	want("moved " + inner)
	w.Close()
	if err := os.WriteFile(filepath.Join(dir, "b"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-told:
		t.Errorf("told %q after the end", got)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestAWatchThatHasNotBegun(*testing.T) {
	var none *watch.Watch
	none.Close()
	watch.Start(watch.Request{}).Close()
}
