package within

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/spawn"
)

// asSandbox is the name by which this program becomes a sandbox.
const asSandbox = "within-sandbox"

func TestMain(m *testing.M) {
	if os.Args[0] == asSandbox {
		fmt.Fprintln(os.Stderr, beSandbox())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// beSandbox makes the room in this process's namespace, and says what it hears
// until nobody speaks.
func beSandbox() error {
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("tmpfs", "/run", "tmpfs", 0, ""),
		os.MkdirAll(room, 0o755),
		unix.Mount("tmpfs", room, "tmpfs", 0, ""),
	)
	if err == nil {
		_, err = io.Copy(os.Stdout, os.Stdin)
	}
	return err
}

// sandbox is a process in a mount namespace of its own, where the room is.
func sandbox(t *testing.T) (pid int) {
	t.Helper()
	if _, err := os.Stat("/run"); err != nil {
		t.Skip("NOT RUN: a sandbox has a folder /run: ", err)
	}
	runtime.LockOSThread() // it dies with this thread
	t.Cleanup(runtime.UnlockOSThread)
	life, end, err := os.Pipe()
	must.Do(t, err)
	said, say, err := os.Pipe()
	must.Do(t, err)
	pid, err = spawn.Start(spawn.Program{
		Path: "/proc/self/exe", Args: []string{asSandbox}, Files: []int{int(life.Fd()), int(say.Fd()), 2},
		PIDs: true, Mounts: true, Rights: []uintptr{unix.CAP_SYS_ADMIN},
	})
	life.Close()
	say.Close()
	if err != nil {
		t.Skip("NOT RUN: needs user namespaces: ", err)
	}
	t.Cleanup(func() {
		end.Close()
		said.Close()
		var state syscall.WaitStatus
		syscall.Wait4(pid, &state, 0, nil)
	})
	// It says what it hears once the room is there.
	_, err = end.WriteString("x")
	must.Do(t, err)
	_, err = said.Read(make([]byte, 1))
	must.Do(t, err)
	return pid
}

// mountsAt counts what is mounted in a sandbox at a path.
func mountsAt(t *testing.T, pid int, path string) int {
	t.Helper()
	return strings.Count(must.Read(t, fmt.Sprintf("/proc/%d/mountinfo", pid)), " "+path+" ")
}

// wantStep expects that laying stops at a step, for a path.
func wantStep(t *testing.T, err error, path, step string, errno syscall.Errno) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Step != step || e.Path != path || !errors.Is(err, errno) {
		t.Errorf("got %v; want that it stops at %q with %v", err, step, errno)
	}
}

func TestALinkOnTheWayIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	must.Do(t, os.Symlink("folder", filepath.Join(dir, "link")))
	must.Write(t, filepath.Join(dir, "folder/file"), "")
	for _, name := range []string{"link/file", "link"} {
		at := filepath.Join(dir, name)
		if err := Lay(sandbox(t), []Cover{{Path: at, With: Folder}}, nil); name == "link" {
			// A link itself can be opened, but nothing be mounted on it.
			wantStep(t, err, at, "lay it over the file", unix.EINVAL)
		} else {
			wantStep(t, err, at, "find the file inside", unix.ELOOP)
		}
	}
}

func TestAFileIsCoveredInsideAndNotOutside(t *testing.T) {
	file, pid := filepath.Join(t.TempDir(), "file"), sandbox(t)
	must.Write(t, file, "outside")
	var outside unix.Stat_t
	must.Do(t, unix.Stat(file, &outside))
	seen := make([]Seen, 1)
	must.Do(t, Lay(pid, []Cover{{Path: file, With: File, Content: []byte("inside"), Mode: 0o400, ReadOnly: true}}, seen))
	inside := fmt.Sprintf("/proc/%d/root%s", pid, file)
	for path, want := range map[string]string{inside: "inside", file: "outside"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s holds %q, %v; want %q", path, text, err, want)
		}
	}
	info, err := os.Stat(inside)
	must.Do(t, err)
	if made := info.Sys().(*syscall.Stat_t).Ino; made != seen[0].Made.Ino || made != seen[0].Path.Ino {
		t.Errorf("another file was seen: %d, not %d, lies at its path, not %d", seen[0].Made.Ino, made, seen[0].Path.Ino)
	}
	if seen[0].Under.Ino != outside.Ino || seen[0].System.Flags&unix.ST_RDONLY == 0 {
		t.Errorf("seen: %+v", seen[0])
	}
	if n := mountsAt(t, pid, room); n != 1 {
		t.Errorf("%d mounts at the room; want its own", n)
	}
}

func TestAFolderCoversItself(t *testing.T) {
	dir, pid := t.TempDir(), sandbox(t)
	must.Do(t, Lay(pid, []Cover{{Path: dir, ReadOnly: true}}, nil))
	if n := mountsAt(t, pid, dir); n != 1 {
		t.Errorf("%d mounts at the folder", n)
	}
}

func TestTheRoomIsGivenBackWhateverFails(t *testing.T) {
	var s script
	s.mountRoom()
	s.about = "this"
	s.bind(s.create(nil, 0o400))
	s.open(0, "/nowhere/at/all")
	s.unmountRoom()
	wantRoomGivenBack(t, &s)
}

func TestNothingIsGivenBackThatWasNotTaken(t *testing.T) {
	var s script
	s.about = "this"
	s.open(0, "/nowhere/at/all")
	s.mountRoom()
	s.unmountRoom()
	wantRoomGivenBack(t, &s)
}

// wantRoomGivenBack runs a script that does not find its file.
func wantRoomGivenBack(t *testing.T, s *script) {
	t.Helper()
	pid := sandbox(t)
	_, ended, err := s.start(pid, "mnt")
	must.Do(t, err)
	wantStep(t, ended(), "this", "find the file inside", unix.ENOENT)
	if n := mountsAt(t, pid, room); n != 1 {
		t.Errorf("%d mounts at the room; want its own", n)
	}
}

// The limit holds for who is in the sandbox, in a namespace below it, too, and nobody there can raise it.
func TestALimitHoldsInsideAndNotOutside(t *testing.T) {
	const name = "max_inotify_instances"
	before, err := os.ReadFile("/proc/sys/user/" + name)
	must.Do(t, err)
	pid := sandbox(t)
	must.Do(t, Prepare(pid, []Setting{{name, "7"}, {"max_inotify_watches", "8"}}, nil, nil))
	said := filepath.Join(t.TempDir(), "said")
	var s script
	must.Do(t, s.execute("/bin/sh", []string{"sh", "-c", fmt.Sprintf(
		"exec >%s; read a </proc/sys/user/%s; read b </proc/sys/user/max_inotify_watches; echo $a $b; (echo 99 >/proc/sys/user/%s) 2>/dev/null || echo refused",
		said, name, name)}))
	_, ended, err := s.start(pid, "mnt")
	must.Do(t, err)
	must.Do(t, ended())
	got, _ := os.ReadFile(said)
	if string(got) != "7 8\nrefused\n" && os.Getuid() != 0 {
		t.Errorf("inside: %q", got)
	}
	if after, err := os.ReadFile("/proc/sys/user/" + name); err != nil || string(after) != string(before) {
		t.Errorf("outside: %q, %v; it was %q", after, err, before)
	}
	var e *Error
	if err := Prepare(pid, []Setting{{"max_nothing", "1"}}, nil, nil); !errors.As(err, &e) || e.Step != "limit max_nothing" {
		t.Errorf("a limit that the kernel does not have: %v", err)
	}
}

func TestASandboxThatHasEnded(t *testing.T) {
	const never = 1 << 30 // past PID_MAX_LIMIT (proc(5))
	if err := Lay(never, nil, nil); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
}
