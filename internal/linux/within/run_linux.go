package within

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrGone means that the sandbox has ended.
var ErrGone = errors.New("the sandbox has ended")

// Error says which system call failed, and what for.
type Error struct {
	Path string // of the [Cover] that the call was for; empty: it was for all
	Step string // what failed, as in "cannot STEP"
	Err  error
}

func (e *Error) Error() string { return "cannot " + e.Step + ": " + e.Err.Error() }

// Unwrap returns the system call's error.
func (e *Error) Unwrap() error { return e.Err }

// start starts a script in one namespace of a process, of a kind such as "mnt", and in the user namespace that owns
// it. It fails with [ErrGone] if there is no such process. The caller must call ended, which waits for the script's
// end; pid is that of the copy.
func (s *script) start(process int, kind string) (pid int, ended func() error, err error) {
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", process, kind))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, ErrGone
	}
	if err != nil {
		return 0, nil, err
	}
	defer namespace.Close()
	user, err := unix.IoctlRetInt(int(namespace.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return 0, nil, fmt.Errorf("find the sandbox's user namespace: %w", err)
	}
	defer unix.Close(user)
	out, free, err := share[outcome](1)
	if err != nil {
		return 0, nil, err
	}
	pid, err = (&copied{s, uintptr(user), namespace.Fd(), &out[0]}).start()
	if err != nil {
		free()
		return 0, nil, err
	}
	return pid, func() error {
		defer free()
		err := wait(pid)
		if out[0].errno != 0 {
			return s.failed(out[0])
		}
		return err
	}, nil
}

// share allocates n zero values in memory that copies of this process share with it. T must hold no pointers. The
// caller calls free.
func share[T any](n int) (list []T, free func(), err error) {
	size := max(n, 1) * int(unsafe.Sizeof(*new(T)))
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[0])), n), func() { unix.Munmap(memory) }, nil
}

func (s *script) failed(o outcome) error {
	if o.failed < 0 {
		return &Error{Step: "enter the sandbox", Err: o.errno}
	}
	failed := s.calls[o.failed]
	return &Error{Path: failed.about, Step: failed.step, Err: o.errno}
}

// copied is a copy of this process that has one thread. It can do very little: other threads may have held locks of
// Go's runtime, so it may neither allocate nor grow its stack nor return from the function that forked. It makes
// system calls by [syscall.RawSyscall], as package syscall does between fork and exec, and ends. It reports by
// writing to shared memory.
type copied struct {
	script          *script
	user, namespace uintptr
	outcome         *outcome
}

// outcome is how a script ended.
type outcome struct {
	failed int // index of the call; -1: it failed before the first
	errno  syscall.Errno
}

// start makes the copy. Every signal is blocked in it, because the handlers are those of Go's runtime.
func (c *copied) start() (pid int, err error) {
	runtime.LockOSThread() // the mask is the thread's
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return 0, err
	}
	child, errno := c.fork()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil); err != nil {
		return 0, err
	}
	if errno != 0 {
		return 0, errno
	}
	return int(child), nil
}

// fork returns in this process only. The copy runs the script, and ends.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (c *copied) fork() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	c.outcome.failed = -1
	_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, c.user, 0, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, c.namespace, 0, 0)
	}
	c.outcome.errno = errno
	if errno == 0 {
		c.outcome.failed, c.outcome.errno = c.script.run()
	}
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// run makes the calls, in a copy of this process. It returns the index and the error of the first call that failed.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s *script) run() (failed int, errno syscall.Errno) {
	for i := range s.calls {
		c := &s.calls[i]
		if errno != 0 && (c.undoes == 0 || c.undoes > failed) {
			continue
		}
		args := &c.args
		if c.files[0] > 0 {
			args[0] = s.files[c.files[0]]
		}
		if c.files[1] > 0 {
			args[2] = s.files[c.files[1]]
		}
		got, _, err := syscall.RawSyscall6(c.number, args[0], args[1], args[2], args[3], args[4], args[5])
		if err == 0 && c.wants != 0 && got != c.wants {
			err = syscall.EIO
		}
		if err != 0 && errno == 0 {
			failed, errno = i, err
		}
		if c.opens > 0 {
			s.files[c.opens] = got
		}
	}
	return failed, errno
}

// wait waits until a copy has ended. Any status but 0 is an error.
func wait(pid int) error {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case status != 0:
			return fmt.Errorf("the copy of this process ended with status %#x", uint32(status))
		default:
			return nil
		}
	}
}
