package netns

import (
	"fmt"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/fork"
)

// batch is how many sockets one visit to a namespace can make.
const batch = 64

// visit is what a visitor shall make.
type visit struct {
	user, net              uintptr // descriptors of the namespaces
	domain, kind, protocol uintptr
	count                  int
	setting                *byte // path of a file of /proc/sys/net to open for writing, instead of sockets; it ends with a zero

	left *legacy // what it leaves behind, in shared memory
}

// legacy is what a visitor has done.
type legacy struct {
	step  int           // the last that was begun, see visitSteps
	errno syscall.Errno // why it failed; 0: all went well
	made  int
	fds   [batch]int
}

var visitSteps = [...]string{
	"start", "join its user namespace", "join its network namespace", "make a socket there", "open a setting of it",
}

// descriptors are what a copy of this process makes in a namespace, see package
// fork. It shares the table of descriptors: what it makes is ours at once.
func (v *visit) descriptors() ([]int, error) {
	shared, err := fork.Shared(int(unsafe.Sizeof(legacy{})))
	if err != nil {
		return nil, err
	}
	defer unix.Munmap(shared)
	v.left = (*legacy)(unsafe.Pointer(&shared[0]))
	failed := fork.Run(v.fork)
	if v.left.errno != 0 {
		failed = fmt.Errorf("%s: %w", visitSteps[v.left.step], v.left.errno)
	}
	fds := slices.Clone(v.left.fds[:v.left.made])
	if failed != nil {
		closeAll(fds)
		return nil, failed
	}
	return fds, nil
}

//go:norace
//go:noinline
//go:nosplit
//go:nocheckptr
func (v *visit) fork() (pid uintptr, errno syscall.Errno) {
	pid, errno = fork.Fork(unix.CLONE_FILES)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	v.enter()
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// enter is what the copy does.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (v *visit) enter() {
	left := v.left
	left.step = 1
	_, _, errno := syscall.RawSyscall(unix.SYS_SETNS, v.user, unix.CLONE_NEWUSER, 0)
	if errno == 0 {
		left.step = 2
		_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, v.net, unix.CLONE_NEWNET, 0)
	}
	if errno == 0 && v.setting != nil {
		left.step = 4
		const root = ^uintptr(99) // AT_FDCWD, which an absolute path does not need
		var fd uintptr
		fd, _, errno = syscall.RawSyscall6(unix.SYS_OPENAT, root, uintptr(unsafe.Pointer(v.setting)), unix.O_WRONLY|unix.O_CLOEXEC, 0, 0, 0)
		if errno == 0 {
			left.fds[0], left.made = int(fd), 1
		}
	} else if errno == 0 {
		left.step = 3
	}
	for errno == 0 && left.made < v.count {
		var fd uintptr
		fd, _, errno = syscall.RawSyscall(unix.SYS_SOCKET, v.domain, v.kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, v.protocol)
		if errno == 0 {
			left.fds[left.made] = int(fd)
			left.made++
		}
	}
	left.errno = errno
}
