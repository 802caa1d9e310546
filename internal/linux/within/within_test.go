package within_test

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

	"claudebox/internal/linux/spawn"
	"claudebox/internal/linux/within"
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
		os.MkdirAll(within.Room, 0o755),
		unix.Mount("tmpfs", within.Room, "tmpfs", 0, ""),
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
	must(t, err)
	said, say, err := os.Pipe()
	must(t, err)
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
	must(t, err)
	_, err = said.Read(make([]byte, 1))
	must(t, err)
	return pid
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mountsAt counts what is mounted in a sandbox at a path.
func mountsAt(t *testing.T, pid int, path string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	must(t, err)
	return strings.Count(string(text), " "+path+" ")
}

// wantStep expects a script to stop at a step.
func wantStep(t *testing.T, err error, step string, errno syscall.Errno) {
	t.Helper()
	var e *within.Error
	if !errors.As(err, &e) || e.Step != step || e.About != "this" || !errors.Is(err, errno) {
		t.Errorf("got %v; want that it stops at %q with %v", err, step, errno)
	}
}

func TestALinkOnTheWayIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	must(t, os.Symlink("folder", filepath.Join(dir, "link")))
	must(t, os.WriteFile(filepath.Join(dir, "folder/file"), nil, 0o600))
	for _, name := range []string{"link/file", "link"} {
		var s within.Script
		s.About("this")
		s.Lay(s.Bind(s.Open(filepath.Join(dir, "folder"))), s.Open(filepath.Join(dir, name)))
		pid := sandbox(t)
		if err := within.Run(pid, &s); name == "link" {
			// A link itself can be opened, but nothing be mounted on it.
			wantStep(t, err, "lay it over the file", unix.EINVAL)
		} else {
			wantStep(t, err, "find the file inside", unix.ELOOP)
		}
	}
}

func TestAFileIsCoveredInsideAndNotOutside(t *testing.T) {
	file, pid := filepath.Join(t.TempDir(), "file"), sandbox(t)
	must(t, os.WriteFile(file, []byte("outside"), 0o600))
	var s within.Script
	var status unix.Stat_t
	s.Furnish()
	cover := s.Made("name", []byte("inside"), 0o400, &status)
	s.Clear()
	s.ReadOnly(cover)
	s.Lay(cover, s.Open(file))
	must(t, within.Run(pid, &s))
	seen := fmt.Sprintf("/proc/%d/root%s", pid, file)
	for path, want := range map[string]string{seen: "inside", file: "outside"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s holds %q, %v; want %q", path, text, err, want)
		}
	}
	if info, err := os.Stat(seen); err != nil || info.Sys().(*syscall.Stat_t).Ino != status.Ino {
		t.Errorf("it is another file: %v", err)
	}
	if n := mountsAt(t, pid, within.Room); n != 1 {
		t.Errorf("%d mounts at the room; want its own", n)
	}
}

func TestTheRoomIsGivenBackWhateverFails(t *testing.T) {
	var s within.Script
	s.Furnish()
	s.About("this")
	s.Made("name", nil, 0o400, &unix.Stat_t{})
	s.Open("/nowhere/at/all")
	s.Clear()
	wantRoomGivenBack(t, &s)
}

func TestNothingIsGivenBackThatWasNotTaken(t *testing.T) {
	var s within.Script
	s.About("this")
	s.Open("/nowhere/at/all")
	s.Furnish()
	s.Clear()
	wantRoomGivenBack(t, &s)
}

// wantRoomGivenBack runs a script that does not find its file.
func wantRoomGivenBack(t *testing.T, s *within.Script) {
	t.Helper()
	pid := sandbox(t)
	wantStep(t, within.Run(pid, s), "find the file inside", unix.ENOENT)
	if n := mountsAt(t, pid, within.Room); n != 1 {
		t.Errorf("%d mounts at the room; want its own", n)
	}
}

func TestASandboxThatHasEnded(t *testing.T) {
	const never = 1 << 30 // past PID_MAX_LIMIT (proc(5))
	if err := within.Run(never, &within.Script{}); !errors.Is(err, within.ErrGone) {
		t.Errorf("got %v", err)
	}
}
