package beneath_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/alone"
	"claudebox/checks/kit/must"
	"claudebox/internal/linux/beneath"
)

// open gives a folder with a file, a folder, links that lead out of it and
// round in it, a pipe; beside it lies a file that nobody may reach.
func open(t *testing.T) (f *beneath.Folder, at string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	at = filepath.Join(top, "f")
	must.Do(t, os.MkdirAll(at+"/dir", 0o700))
	must.Write(t, top+"/outside", "outside")
	must.Do(t, os.WriteFile(at+"/file", []byte("inside"), 0o640))
	must.Write(t, at+"/dir/file", "below")
	must.Do(t, os.Symlink("../outside", at+"/out"))
	must.Do(t, os.Symlink(top, at+"/up"))
	must.Do(t, os.Symlink("dir", at+"/in"))
	must.Do(t, os.Symlink("gone", at+"/gone"))
	must.Do(t, os.Symlink("loop", at+"/loop"))
	must.Do(t, syscall.Mkfifo(at+"/pipe", 0o600))
	f, err = beneath.Open(at)
	must.Do(t, err)
	t.Cleanup(f.Close)
	return f, at
}

func TestLook(t *testing.T) {
	f, _ := open(t)
	for rel, want := range map[string]beneath.Kind{
		".": beneath.Dir, "file": beneath.Regular, "dir": beneath.Dir, "dir/file": beneath.Regular, "pipe": beneath.Special,
		"nothing": beneath.Absent, "nothing/below": beneath.Absent, "file/below": beneath.Absent,
		"out": beneath.Link, "up": beneath.Link, "gone": beneath.Link, "loop": beneath.Link, "in": beneath.Link,
		"in/file": beneath.Link, "up/outside": beneath.Link, "loop/x": beneath.Link,
	} {
		if what, err := f.Look(rel); err != nil || what.Kind != want {
			t.Errorf("%s: got %v, %v; want %v", rel, what.Kind, err, want)
		}
	}
}

func TestNothingLeadsOut(t *testing.T) {
	f, at := open(t)
	for _, rel := range []string{"out", "up/outside", "../outside", "dir/../../outside", filepath.Dir(at) + "/outside", "in/file", "/proc/self/root/etc/passwd"} {
		if content, err := f.Read(rel, 100); err == nil {
			t.Errorf("%s reads %q", rel, content)
		}
		if rel == "out" {
			continue // a name in the folder: replaced, not followed; see below
		}
		for what, err := range map[string]error{
			"Create":  f.Create(rel, nil, 0o600),
			"Replace": f.Replace(rel, nil, 0o600),
			"Mkdir":   f.Mkdir(rel+"x", 0o700),
			"Remove":  f.Remove(rel),
			"Rename":  f.Rename("file", rel),
			"Symlink": f.Symlink("x", rel+"x"),
			"Chmod":   f.Chmod(rel, 0o777),
		} {
			if err == nil {
				t.Errorf("%s of %s succeeds", what, rel)
			}
		}
	}
	if content, err := os.ReadFile(filepath.Dir(at) + "/outside"); string(content) != "outside" {
		t.Errorf("outside is %q, %v", content, err)
	}
}

func TestReadRefusesWhatIsNoFileOrTooLarge(t *testing.T) {
	f, _ := open(t)
	if _, err := f.Read("pipe", 100); !errors.Is(err, beneath.ErrNotRegular) {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := f.Read("dir", 100); !errors.Is(err, beneath.ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := f.Read("file", 5); !errors.Is(err, beneath.ErrTooLarge) {
		t.Errorf("one byte too many: %v", err)
	}
	if content, err := f.Read("file", 6); err != nil || string(content) != "inside" {
		t.Errorf("just small enough: %q, %v", content, err)
	}
	if _, err := f.Read("nothing", 5); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := f.Names(".", 3); !errors.Is(err, beneath.ErrTooLarge) {
		t.Errorf("too many names: %v", err)
	}
}

func TestReplaceTakesTheNameNotTheFile(t *testing.T) {
	for _, name := range []string{"file", "out", "gone", "loop", "pipe", "hard", "new"} {
		t.Run(name, func(t *testing.T) {
			f, at := open(t)
			must.Do(t, os.Link(filepath.Dir(at)+"/outside", at+"/hard"))
			must.Do(t, f.Replace(name, []byte("new"), 0o600))
			if content, err := f.Read(name, 10); err != nil || string(content) != "new" {
				t.Errorf("got %q, %v", content, err)
			}
			if content, _ := os.ReadFile(filepath.Dir(at) + "/outside"); string(content) != "outside" {
				t.Errorf("outside is %q", content)
			}
			if what, _ := f.Look(name); what.Perm != 0o600 || what.Names != 1 {
				t.Errorf("mode %o, %d names", what.Perm, what.Names)
			}
		})
	}
}

func TestAFailedReplaceLeavesNothing(t *testing.T) {
	if !alone.In(t, nil) {
		return
	}
	f, at := open(t)
	before := names(t, at)
	if err := f.Replace("dir", []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	var err error
	alone.WithFileLimit(t, 4, func() { err = f.Replace("file", []byte("too long"), 0o600) })
	if !errors.Is(err, syscall.EFBIG) || strings.Contains(err.Error(), "/.file.") {
		t.Errorf("got %v; want the cause, and no temporary name", err)
	}
	if after := names(t, at); !slices.Equal(before, after) {
		t.Errorf("before %q, after %q", before, after)
	}
	if content, _ := f.Read("file", 10); string(content) != "inside" {
		t.Errorf("the old file is %q", content)
	}
}

func names(t *testing.T, at string) []string {
	entries, err := os.ReadDir(at)
	must.Do(t, err)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestCreateNeverReplaces(t *testing.T) {
	f, _ := open(t)
	for _, name := range []string{"file", "dir", "out", "gone", "pipe"} {
		if err := f.Create(name, nil, 0o600); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStampTellsContentsApart(t *testing.T) {
	f, at := open(t)
	before, err := f.Look("file")
	must.Do(t, err)
	info, err := os.Stat(at + "/file")
	must.Do(t, err)
	for range 1000 { // older kernels count time in ticks of some milliseconds
		must.Do(t, os.WriteFile(at+"/file", []byte("INSIDE"), 0o640)) // same size and inode
		must.Do(t, os.Chtimes(at+"/file", info.ModTime(), info.ModTime()))
		if after, _ := f.Look("file"); after.Stamp != before.Stamp {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("a file with another content has the same stamp")
}

func TestOpenFollowsNoLink(t *testing.T) {
	_, at := open(t)
	for _, path := range []string{at + "/in", at + "/up/f", at + "/file", at + "/nothing"} {
		if f, err := beneath.Open(path); err == nil {
			f.Close()
			t.Errorf("%s opens", path)
		}
	}
}

func TestWritersAtOnceAllSucceed(t *testing.T) {
	dir := t.TempDir()
	f, err := beneath.Open(dir)
	must.Do(t, err)
	defer f.Close()
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 200 {
				if err := f.Rewrite("file", []byte("whole"), 0o600); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v; want one file", entries, err)
	}
}
