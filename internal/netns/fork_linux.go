package netns

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/spawn/vfork"
)

// batch is how many sockets one visit to a namespace can make.
const batch = 64

// visit is what a visitor leaves behind.
type visit struct {
	step  int32 // the last that was begun, see visitSteps
	errno int32 // why it failed; 0: all went well
	made  int32
	fds   [batch]int32
}

var visitSteps = [...]string{
	"start", "join its user namespace", "join its network namespace", "make a socket there", "open a setting of it",
}

// order is what a visitor shall make.
type order struct {
	user, net              uintptr // descriptors of the namespaces
	domain, kind, protocol uintptr
	count                  int32
	setting                *byte // path of a file of /proc/sys/net to open for writing, instead of sockets; it ends with a zero
}

// sockets makes sockets in a namespace by a short-lived child. It has to be a
// child, as a process with threads cannot change its user namespace
// (setns(2)), and without a program of its own, which would cost milliseconds.
// It shares our memory and the table of descriptors: what it makes is ours at
// once.
func sockets(o order) ([]int, error) {
	left := &visit{}
	failed := visitBy(&o, left)
	var fds []int
	for _, fd := range left.fds[:left.made] {
		fds = append(fds, int(fd))
	}
	if left.errno != 0 {
		failed = fmt.Errorf("%s: %w", visitSteps[left.step], unix.Errno(left.errno))
	}
	if failed != nil {
		closeAll(fds)
		return nil, failed
	}
	return fds, nil
}

// visitBy sends a child and waits until it is gone. Signals are blocked in it
// from its first moment, as it has no Go runtime that could handle one.
func visitBy(o *order, left *visit) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return err
	}
	pid, errno := fork(o, left)
	runtime.KeepAlive(o)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil); err != nil || errno != 0 {
		return errors.Join(err, nilIfZero(errno))
	}
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && status != 0 {
			err = fmt.Errorf("the visitor ended with status %#x", uint32(status))
		}
		return err
	}
}

func nilIfZero(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// fork is both processes. The child may do nothing but system calls, see
// [vfork.Fork]. Its end is no signal for anyone (clone(2), no SIGCHLD), so that
// no other wait of this process sees it.
//
//go:norace
//go:noinline
//go:nosplit
//go:nocheckptr
func fork(o *order, left *visit) (pid int, err unix.Errno) {
	child, failed := vfork.Fork(unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES)
	if failed != 0 || child != 0 {
		return int(child), unix.Errno(failed)
	}
	left.step = 1
	_, _, errno := syscall.RawSyscall(unix.SYS_SETNS, o.user, unix.CLONE_NEWUSER, 0)
	if errno == 0 {
		left.step = 2
		_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, o.net, unix.CLONE_NEWNET, 0)
	}
	if errno == 0 && o.setting != nil {
		left.step = 4
		const root = ^uintptr(99) // AT_FDCWD, which an absolute path does not need
		var fd uintptr
		fd, _, errno = syscall.RawSyscall6(unix.SYS_OPENAT, root, uintptr(unsafe.Pointer(o.setting)), unix.O_WRONLY|unix.O_CLOEXEC, 0, 0, 0)
		if errno == 0 {
			left.fds[0], left.made = int32(fd), 1
		}
	} else if errno == 0 {
		left.step = 3
	}
	for errno == 0 && left.made < o.count {
		var fd uintptr
		fd, _, errno = syscall.RawSyscall(unix.SYS_SOCKET, o.domain, o.kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, o.protocol)
		if errno == 0 {
			left.fds[left.made] = int32(fd)
			left.made++
		}
	}
	left.errno = int32(errno)
	for {
		syscall.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
}
