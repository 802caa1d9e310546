//go:build lab

package confine_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/alone"
	"claudebox/checks/kit/must"
	"claudebox/internal/linux/confine"
)

// These tests confine a process of their own: this program once more. Go can
// reach all threads of a process only where it is not linked with C, as
// claudebox never is: they are built without.

const deed = "CONFINE_TEST_DEED"

func TestMain(m *testing.M) {
	do, ours := deeds[os.Getenv(deed)]
	switch {
	case !ours && alone.LinkedWithC():
		os.Exit(alone.WithoutC())
	case !ours:
		os.Exit(m.Run())
	}
	if err := do(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// deeds are done in a process of their own; each fails where something went
// otherwise than it should.
var deeds = map[string]func() error{
	"work":    work,
	"attacks": attacks,
	"threads": threads,
	"read":    read,
}

func confined(t *testing.T, name string, files ...*os.File) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), deed+"="+name, "CONFINE_TEST_DIR="+t.TempDir())
	cmd.ExtraFiles = files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// An agent took all signals that may wait for a user's processes: every helper of claudebox that began then, of other
// sessions, too, waited for a thread of its own for good.
func TestAProcessForWhichNoSignalCanWaitSaysSo(t *testing.T) {
	cmd := exec.Command("prlimit", "--sigpending=1", "/proc/self/exe")
	cmd.Args[2], _ = os.Executable()
	cmd.Env = append(os.Environ(), deed+"=threads", "CONFINE_TEST_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "a program has taken them") {
		t.Errorf("%v: %s", err, out)
	}
}

// Descriptor 3 is a socket that a client waits at, 4 is one too many.
func TestAConfinedProcessDoesItsWork(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	must.Do(t, err)
	defer listener.Close()
	file, err := listener.(*net.UnixListener).File()
	must.Do(t, err)
	defer file.Close()
	more, err := os.Open("/etc/passwd")
	must.Do(t, err)
	defer more.Close()
	go func() {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_, _ = io.WriteString(conn, strings.Repeat("x", 1<<20))
			conn.Close()
		}
	}()
	confined(t, "work", file, more)
}

func work() error {
	if err := confine.Self(confine.Options{Keep: []int{3}, Calls: confine.Sockets()}); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(4, &st); err != unix.EBADF {
		return fmt.Errorf("descriptor 4: %v; want it closed", err)
	}
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	got, err := io.ReadAll(conn)
	if err != nil || len(got) != 1<<20 {
		return fmt.Errorf("read %d bytes, %v", len(got), err)
	}
	var group sync.WaitGroup
	for range 8 { // threads, memory, a collection
		group.Go(func() {
			runtime.LockOSThread()
			_ = make([]byte, 8<<20)
			time.Sleep(time.Millisecond)
		})
	}
	group.Wait()
	runtime.GC()
	return nil
}

func TestAConfinedProcessHasNoWayOut(t *testing.T) { confined(t, "attacks") }

func attacks() error {
	dir := os.Getenv("CONFINE_TEST_DIR")
	if err := confine.Self(confine.Options{}); err != nil {
		return err
	}
	var failed []error
	for name, attack := range map[string]func() error{
		"reads a file":           func() error { _, err := os.ReadFile("/etc/passwd"); return err },
		"makes a file":           func() error { return os.WriteFile(dir+"/x", nil, 0o600) },
		"removes a folder":       func() error { return os.Remove(dir) },
		"starts a program":       func() error { return exec.Command("/proc/self/exe").Run() },
		"makes a socket":         func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
		"signals its parent":     func() error { return unix.Kill(os.Getppid(), 0) },
		"reads another's memory": func() error { return unix.PtraceAttach(os.Getppid()) },
		"makes memory executable": func() error {
			_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
			return err
		},
		"makes a namespace": func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
	} {
		if err := attack(); !errors.Is(err, unix.EPERM) {
			failed = append(failed, fmt.Errorf("it %s: %v; want EPERM", name, err))
		}
	}
	return errors.Join(failed...)
}

func TestEveryThreadIsConfined(t *testing.T) { confined(t, "threads") }

// threads holds several threads that were there before.
func threads() error {
	var ready, group sync.WaitGroup
	confined := make(chan struct{})
	errs := make(chan error, 8)
	for range cap(errs) {
		ready.Add(1)
		group.Go(func() {
			runtime.LockOSThread()
			ready.Done()
			<-confined
			_, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0)
			errs <- err
		})
	}
	ready.Wait()
	if err := confine.Self(confine.Options{}); err != nil {
		return err
	}
	close(confined)
	group.Wait()
	close(errs)
	for err := range errs {
		if err != unix.EPERM {
			return fmt.Errorf("a thread opens a file: %v; want EPERM", err)
		}
	}
	return nil
}

func TestOnlyWhatIsNamedIsRead(t *testing.T) { confined(t, "read") }

func read() error {
	if err := confine.Self(confine.Options{Read: []string{"/proc/self/status", "/etc"}, Files: 16}); err != nil {
		return err
	}
	if _, err := os.ReadFile("/etc/passwd"); err != nil {
		return err
	}
	if _, err := os.ReadDir("/etc"); err != nil {
		return err
	}
	for _, path := range []string{"/proc/version", "/proc/self/environ", "/etc/../proc/version"} {
		if _, err := os.ReadFile(path); !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("read %s: %v; want EACCES", path, err)
		}
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != syscall.EPERM {
		return fmt.Errorf("getrlimit: %v; want EPERM", err)
	}
	for range 16 {
		if _, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0); err == unix.EMFILE {
			return nil
		}
	}
	return errors.New("17 files could be opened; want a limit of 16")
}
