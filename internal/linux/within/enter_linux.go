package within

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/spawn/vfork"
)

// ErrGone means that the sandbox has ended.
var ErrGone = errors.New("the sandbox has ended")

// Error says which call of a script failed, and what for.
type Error struct {
	About, Step string
	Err         error
}

func (e *Error) Error() string {
	text := "cannot " + e.Step + ": " + e.Err.Error()
	if e.About != "" {
		text = e.About + ": " + text
	}
	return text
}

// Unwrap gives the error number.
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
	b := &borrower{script: s, user: uintptr(user), mount: mount.Fd()}
	if err := vfork.Visit(b.fork); err != nil {
		return err
	}
	switch {
	case b.errno == 0:
		return nil
	case b.failed < 0:
		return &Error{Step: "enter the sandbox", Err: b.errno}
	}
	c := s.calls[b.failed]
	return &Error{About: c.about, Step: c.step, Err: b.errno}
}

// borrower is the process that runs a script. It writes to failed and errno,
// and to the script.
type borrower struct {
	script      *Script
	user, mount uintptr // namespaces
	failed      int     // the call; -1: before the first
	errno       syscall.Errno
}

// fork makes the process. What runs in it may neither allocate nor grow the
// stack nor return from here: the stack is the parent's.
//
//go:noinline
//go:norace
//go:nocheckptr
func (b *borrower) fork() (pid uintptr, errno syscall.Errno) {
	var before uint64
	pid, failed := vfork.Fork(vfork.Borrowing, &before)
	if failed != 0 || pid != 0 {
		return pid, syscall.Errno(failed)
	}
	b.run()
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func (b *borrower) run() {
	b.failed = -1
	if _, _, b.errno = syscall.RawSyscall(unix.SYS_SETNS, b.user, unix.CLONE_NEWUSER, 0); b.errno != 0 {
		return
	}
	if _, _, b.errno = syscall.RawSyscall(unix.SYS_SETNS, b.mount, unix.CLONE_NEWNS, 0); b.errno != 0 {
		return
	}
	b.failed, b.errno = b.script.run()
}
