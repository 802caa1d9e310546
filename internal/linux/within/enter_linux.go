package within

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/fork"
)

// ErrGone means that the sandbox has ended.
var ErrGone = errors.New("the sandbox has ended")

// Error says which call of a script failed, and what for.
type Error struct {
	About string // what the call was for; may be empty
	Step  string // what failed, as in "cannot STEP"
	Err   error
}

func (e *Error) Error() string {
	text := "cannot " + e.Step + ": " + e.Err.Error()
	if e.About != "" {
		text = e.About + ": " + text
	}
	return text
}

// Unwrap returns the system call's error.
func (e *Error) Unwrap() error { return e.Err }

// Run runs a script in the mount namespace of a process, and in the user
// namespace that owns that: not the one the process is in, which may lie below
// it (bwrap --disable-userns). It fails with [ErrGone] when there is no such
// process any more.
func Run(process int, s *Script) error {
	mount, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", process))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	defer mount.Close()
	user, err := unix.IoctlRetInt(int(mount.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return fmt.Errorf("find the sandbox's user namespace: %w", err)
	}
	defer unix.Close(user)
	size := int(unsafe.Sizeof(outcome{}))
	for _, a := range s.answers {
		size += len(a.to)
	}
	shared, err := fork.Shared(size)
	if err != nil {
		return err
	}
	defer unix.Munmap(shared)
	c := &copied{script: s, user: uintptr(user), mount: mount.Fd(), outcome: (*outcome)(unsafe.Pointer(&shared[0]))}
	rest := shared[unsafe.Sizeof(outcome{}):]
	for i := range s.answers {
		a := &s.answers[i]
		a.in, rest = rest[:len(a.to)], rest[len(a.to):]
		s.calls[a.call].args[1] = uintptr(unsafe.Pointer(&a.in[0]))
	}
	if err := fork.Run(c.fork); err != nil {
		return err
	}
	for _, a := range s.answers {
		copy(a.to, a.in)
	}
	switch {
	case c.outcome.errno == 0:
		return nil
	case c.outcome.failed < 0:
		return &Error{Step: "enter the sandbox", Err: c.outcome.errno}
	}
	failed := s.calls[c.outcome.failed]
	return &Error{About: failed.about, Step: failed.step, Err: c.outcome.errno}
}

// copied is the copy of this process that runs a script. It writes to the
// outcome and to the script's answers, which are shared.
type copied struct {
	script      *Script
	user, mount uintptr // namespaces
	outcome     *outcome
}

// outcome is how a script ended.
type outcome struct {
	failed int // the call; -1: before the first
	errno  syscall.Errno
}

// fork returns in this process only. The copy runs the script, and ends: no
// allocation, no stack growth, no Go runtime (see package fork).
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (c *copied) fork() (pid uintptr, errno syscall.Errno) {
	pid, errno = fork.Fork(0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	c.outcome.failed = -1
	_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, c.user, unix.CLONE_NEWUSER, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, c.mount, unix.CLONE_NEWNS, 0)
	}
	if c.outcome.errno = errno; errno == 0 {
		c.outcome.failed, c.outcome.errno = c.script.run()
	}
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
