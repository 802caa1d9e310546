package state_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"claudebox/checks/kit/alone"
	"claudebox/checks/kit/must"
	"claudebox/internal/agent/state"
)

// inNamespace runs the test again as root of a user and mount namespace of its
// own, where it may mount small disks. In the child it returns true.
func inNamespace(t *testing.T) bool {
	t.Helper()
	return alone.In(t, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	})
}

// tinyDisk gives a world whose CLAUDEBOX_HOME can be made on a disk with room
// for so many 4 KiB blocks and files.
func tinyDisk(t *testing.T, blocks, files string) world {
	w := newWorld(t)
	must.Do(t, os.Mkdir(w.path("disk"), 0o700))
	must.Do(t, syscall.Mount("tmpfs", w.path("disk"), "tmpfs", 0, "mode=700,nr_blocks="+blocks+",nr_inodes="+files))
	t.Cleanup(func() { must.Do(t, syscall.Unmount(w.path("disk"), 0)) })
	return w
}

func TestFullDiskLeavesNothingBehind(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	failures := 0
	for files := 2; ; files++ {
		w := tinyDisk(t, "0", strconv.Itoa(files))
		req := w.request()
		req.Home, req.AskTokens = w.path("disk/.claudebox"), nil
		in, err := state.Look(req)
		must.Do(t, err)
		err = in.Prepare()
		if err == nil {
			must.Do(t, in.Close())
			break
		}
		failures++
		wantRefusal(t, err, "no space left", "free some space")
		if got := w.tree("disk"); len(got) != 1 {
			t.Errorf("with room for %d files it left %q", files, got)
		}
	}
	if failures < 8 {
		t.Errorf("failed %d times only: the disk was not small", failures)
	}
}

func TestFullDiskKeepsTheOldFiles(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	w := tinyDisk(t, "12", "100")
	req := w.request()
	req.Home = w.path("disk/.claudebox")
	in := w.session(req)
	before := w.tree("disk")
	old := must.Read(t, filepath.Join(in.Dir, ".claude/CLAUDE.md"))
	w.write(".claude/CLAUDE.md", strings.Repeat("x", 1<<20))
	again, err := state.Look(req)
	must.Do(t, err)
	wantRefusal(t, again.Prepare(), "no space left", "free some space")
	if now, _ := os.ReadFile(filepath.Join(in.Dir, ".claude/CLAUDE.md")); string(now) != old {
		t.Errorf("the old file is now %d bytes", len(now))
	}
	if after := w.tree("disk"); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("before %q, after %q", before, after)
	}
}

func TestReadOnlyHomeIsRefusedWithARemedy(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	w := tinyDisk(t, "0", "0")
	must.Do(t, syscall.Mount("", w.path("disk"), "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""))
	req := w.request()
	req.Home = w.path("disk/.claudebox")
	in, err := state.Look(req)
	must.Do(t, err)
	wantRefusal(t, in.Prepare(), "read-only file system", "CLAUDEBOX_HOME")
}

func TestHomeInAFolderThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	req := w.request()
	req.Home = w.path("gone/.claudebox")
	in, err := state.Look(req)
	must.Do(t, err)
	wantRefusal(t, in.Prepare(), "no such file", "CLAUDEBOX_HOME")
	must.Do(t, in.Close())
}
