package watch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/watch"
)

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	inner, absent := filepath.Join(dir, "inner"), filepath.Join(dir, "absent")
	must.Do(t, os.Mkdir(inner, 0o700))
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
	must.Write(t, filepath.Join(inner, "a"), "")
	want("saw " + filepath.Join(inner, "a"))
	must.Do(t, os.Rename(inner, filepath.Join(dir, "other")))
	want("moved " + inner)
	w.Close()
	must.Write(t, filepath.Join(dir, "b"), "")
	select {
	case got := <-told:
		t.Errorf("told %q after the end", got)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestWhatCannotBeWatchedIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	absent := filepath.Join(dir, "absent")
	w, err := watch.Open(watch.Request{Folders: func() []string { return []string{dir, absent} }, Events: unix.IN_CREATE})
	if !errors.Is(err, unix.ENOENT) || w != nil {
		t.Errorf("got %v, %v", w, err)
	}
}

// What happens before it is served is not lost.
func TestAWatchIsOpenFromItsOpening(t *testing.T) {
	dir, told := t.TempDir(), make(chan string, 10)
	w, err := watch.Open(watch.Request{
		Folders: func() []string { return []string{dir} }, Events: unix.IN_CREATE,
		See: func(path string) { told <- path },
	})
	must.Do(t, err)
	defer w.Close()
	must.Write(t, filepath.Join(dir, "a"), "")
	w.Serve()
	select {
	case got := <-told:
		if got != filepath.Join(dir, "a") {
			t.Errorf("told %q", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing is told")
	}
}

// Another folder comes in the place of one that was watched; of the top that is a failure.
func TestAFolderThatIsRemovedAndMadeAgainIsWatchedAgain(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	inner, told := filepath.Join(top, "a/b"), make(chan string, 100)
	must.Do(t, os.MkdirAll(inner, 0o700))
	w, err := watch.Open(watch.Request{
		Folders: func() []string { return []string{inner, filepath.Dir(inner), top} },
		Events:  unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVE_SELF,
		See:     func(path string) { told <- "saw " + path }, Moved: func(folder string) { told <- "moved " + folder },
		Failed: func(folder string, err error) { told <- "failed " + folder },
	})
	must.Do(t, err)
	defer w.Close()
	w.Serve()
	until := func(want string) {
		t.Helper()
		for end := time.After(10 * time.Second); ; {
			select {
			case got := <-told:
				if got == want {
					return
				}
			case <-end:
				t.Fatalf("not told %q", want)
			}
		}
	}
	for range 3 {
		must.Do(t, os.RemoveAll(filepath.Join(top, "a")), os.MkdirAll(inner, 0o700))
		file := filepath.Join(inner, "file")
		seen := false
		for try := 0; !seen && try < 1000; try++ { // it is watched again soon
			os.Remove(file)
			must.Write(t, file, "")
			select {
			case got := <-told:
				seen = got == "saw "+file
			case <-time.After(10 * time.Millisecond):
			}
		}
		if !seen {
			t.Fatal("it is not watched again")
		}
	}
	must.Do(t, os.RemoveAll(top))
	until("failed " + top)
}

// The kernel keeps 16,384 events at most by default. When there were more, anything may have happened.
func TestWhenEventsAreLostAllIsLookedAtAgain(t *testing.T) {
	dir, told := t.TempDir(), make(chan string, 1<<17)
	w, err := watch.Open(watch.Request{
		Folders: func() []string { return []string{dir} }, Events: unix.IN_CREATE | unix.IN_DELETE,
		See: func(path string) { told <- path },
	})
	must.Do(t, err)
	defer w.Close()
	text := must.Read(t, "/proc/sys/fs/inotify/max_queued_events")
	most, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || most > 1<<15 {
		t.Skipf("NOT RUN: the kernel keeps %d events, %v", most, err)
	}
	for n := range most/2 + 1 { // two names, as an event that is equal to the last is left out
		name := filepath.Join(dir, strconv.Itoa(n%2))
		must.Do(t, os.WriteFile(name, nil, 0o600), os.Remove(name))
	}
	w.Serve()
	for end := time.After(20 * time.Second); ; {
		select {
		case got := <-told:
			if got == "" {
				return
			}
		case <-end:
			t.Fatal("nothing is looked at again")
		}
	}
}

// Closing one waits for the kernel some 15 ms, which short commands would feel. No descriptor stays.
func TestClosingLeavesNothing(t *testing.T) {
	count := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		must.Do(t, err)
		return len(open)
	}
	dir, before := t.TempDir(), 0
	for n := range 40 { // far fewer than a user may have (max_user_instances is 128): tests of other packages run, too
		w, err := watch.Open(watch.Request{Folders: func() []string { return []string{dir} }, Events: unix.IN_CREATE})
		if err != nil {
			t.Fatalf("watch %d: %v", n, err)
		}
		w.Close()
		if n == 0 {
			before = count()
		}
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}

func TestAWatchThatHasNotBegun(*testing.T) {
	var none *watch.Watch
	none.Close()
	watch.Start(watch.Request{}).Close()
}
