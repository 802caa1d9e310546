package seccomp_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/sandbox/seccomp"
)

// Variables by which a test tells the child it makes of this test binary
// what to try, and whether the filter is installed first.
const (
	attackVariable = "SECCOMP_TEST_ATTACK"
	filterVariable = "SECCOMP_TEST_FILTER"
)

// brokenChild is the exit status of a child that could not even try. It lies
// above every error number.
const brokenChild = 200

// TestMain becomes the child when the variables say so.
func TestMain(m *testing.M) {
	name := os.Getenv(attackVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	a, ok := attacks[name]
	if !ok {
		a = foreign[name]
	}
	os.Exit(child(a.try))
}

// child tries one attack and exits with the error number it met, 0 for none.
func child(try func() error) int {
	runtime.LockOSThread()
	if os.Getenv(filterVariable) != "" {
		if err := install(seccomp.Filter()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return brokenChild
		}
	}
	var errno syscall.Errno
	if err := try(); !errors.As(err, &errno) {
		fmt.Fprintln(os.Stderr, err)
		return brokenChild
	}
	return int(errno)
}

// install puts every thread of the process under filter, as bwrap does.
func install(filter []byte) error {
	program := unix.SockFprog{
		Len:    uint16(len(filter) / unix.SizeofSockFilter),
		Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0])),
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("install the filter: %w", errno)
	}
	return nil
}

// run makes a child on a terminal of its own that tries the named attack.
func run(t *testing.T, name string, filtered bool) outcome {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), attackVariable+"="+name)
	if filtered {
		cmd.Env = append(cmd.Env, filterVariable+"=1")
	}
	cmd.Stderr = os.Stderr
	terminal, err := pty.Start(cmd)
	must.Do(t, err)
	defer terminal.Close()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return outcome{signal: status.Signal()}
	}
	if status.ExitStatus() >= brokenChild {
		t.Fatal("the child could not try")
	}
	return outcome{errno: syscall.Errno(status.ExitStatus())}
}

// prove shows that the attack ends as wanted under the filter, and in another
// way without it, unless this kernel or user is refused all the same.
func prove(t *testing.T, name string, want outcome) {
	t.Helper()
	if free := run(t, name, false); free == want {
		t.Logf("note: %v without the filter as well, so this run proves little", free)
	} else {
		t.Logf("without the filter: %v", free)
	}
	if got := run(t, name, true); got != want {
		t.Errorf("under the filter: %v, want %v", got, want)
	}
}

// String says how the attack ended.
func (o outcome) String() string {
	switch {
	case o.signal != 0:
		return "killed by " + o.signal.String()
	case o.errno == 0:
		return "it succeeded"
	}
	return o.errno.Error()
}
