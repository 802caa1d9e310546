// Package alone runs a test once more in a process of its own, for what is a
// whole process's: its limits, its namespaces. go test goes on in the first
// one, and writes down which files that opens. Only tests import it.
package alone

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"claudebox/checks/kit/must"
)

// marker names, in the process of its own, the test that it is for.
const marker = "CLAUDEBOX_TEST_ALONE"

// In reports whether this is the test's own process. Elsewhere it makes one, with
// attributes if there are any, runs the test there, and fails when it fails.
//
//	if !alone.In(t, nil) {
//		return
//	}
func In(t *testing.T, attributes *syscall.SysProcAttr) bool {
	t.Helper()
	if os.Getenv(marker) == t.Name() {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), marker+"="+t.Name())
	cmd.SysProcAttr = attributes
	out, err := cmd.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran && attributes != nil {
		t.Skipf("NOT RUN: needs what this machine does not give (user namespaces?): %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// LinkedWithC reports whether this program uses cgo, as claudebox never does. Go cannot change all threads then, so
// package confine does not work.
func LinkedWithC() bool {
	_, _, errno := syscall.AllThreadsSyscall(syscall.SYS_GETPID, 0, 0, 0)
	return errno == syscall.ENOTSUP
}

// WithoutC builds this folder's tests with CGO_ENABLED=0 and the tag lab, runs them, and returns the exit status.
func WithoutC() int {
	dir, err := os.MkdirTemp("", "tests")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "test", "-c", "-tags", "lab", "-o", dir+"/test", ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("%v\n%s", err, out)
		return 1
	}
	test := exec.Command(dir+"/test", os.Args[1:]...)
	test.Stdout, test.Stderr = os.Stdout, os.Stderr
	if test.Run() != nil {
		return 1
	}
	return 0
}

// WithFileLimit runs do while no file can grow beyond bytes: writes fail with EFBIG, much as they do with ENOSPC on a
// full disk. Go ignores the signal that comes with it.
func WithFileLimit(t *testing.T, bytes uint64, do func()) {
	t.Helper()
	if os.Getenv(marker) != t.Name() {
		t.Fatal("bug: the limit is the whole process's; call In before")
	}
	var limit syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: limit.Max}))
	do()
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
}
