package netns

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/spawn/vfork"
)

// batch is how many sockets one visit to a namespace can make.
const batch = 64

// visit is what a visitor shall make, and what it leaves behind.
type visit struct {
	user, net              uintptr // descriptors of the namespaces
	domain, kind, protocol uintptr
	count                  int
	setting                *byte // path of a file of /proc/sys/net to open for writing, instead of sockets; it ends with a zero

	step  int        // the last that was begun, see visitSteps
	errno unix.Errno // why it failed; 0: all went well
	made  int
	fds   [batch]int
}

var visitSteps = [...]string{
	"start", "join its user namespace", "join its network namespace", "make a socket there", "open a setting of it",
}

// descriptors are what a short-lived child makes in a namespace. It has to be a
// child, as a process with threads cannot change its user namespace
// (setns(2)), and without a program of its own, which would cost milliseconds.
// It shares our memory and the table of descriptors: what it makes is ours at
// once.
func (v *visit) descriptors() ([]int, error) {
	failed := vfork.Visit(v.fork)
	if v.errno != 0 {
		failed = fmt.Errorf("%s: %w", visitSteps[v.step], v.errno)
	}
	fds := v.fds[:v.made]
	if failed != nil {
		closeAll(fds)
		return nil, failed
	}
	return fds, nil
}

// fork is both processes. The child may do nothing but system calls, see
// [vfork.Fork]. Its end is no signal for anyone (clone(2), no SIGCHLD), so that
// no other wait of this process sees it.
//
//go:norace
//go:noinline
//go:nosplit
//go:nocheckptr
func (v *visit) fork() (pid uintptr, failed syscall.Errno) {
	var before uint64
	pid, errno := vfork.Fork(unix.CLONE_VM|unix.CLONE_VFORK|unix.CLONE_FILES, &before)
	if errno != 0 || pid != 0 {
		return pid, syscall.Errno(errno)
	}
	v.enter()
	for {
		syscall.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

// enter is what the child does.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (v *visit) enter() {
	v.step = 1
	_, _, errno := syscall.RawSyscall(unix.SYS_SETNS, v.user, unix.CLONE_NEWUSER, 0)
	if errno == 0 {
		v.step = 2
		_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, v.net, unix.CLONE_NEWNET, 0)
	}
	if errno == 0 && v.setting != nil {
		v.step = 4
		const root = ^uintptr(99) // AT_FDCWD, which an absolute path does not need
		var fd uintptr
		fd, _, errno = syscall.RawSyscall6(unix.SYS_OPENAT, root, uintptr(unsafe.Pointer(v.setting)), unix.O_WRONLY|unix.O_CLOEXEC, 0, 0, 0)
		if errno == 0 {
			v.fds[0], v.made = int(fd), 1
		}
	} else if errno == 0 {
		v.step = 3
	}
	for errno == 0 && v.made < v.count {
		var fd uintptr
		fd, _, errno = syscall.RawSyscall(unix.SYS_SOCKET, v.domain, v.kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, v.protocol)
		if errno == 0 {
			v.fds[v.made] = int(fd)
			v.made++
		}
	}
	v.errno = errno
}
