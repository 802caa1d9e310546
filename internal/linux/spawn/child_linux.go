package spawn

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/spawn/nofile"
	"claudebox/internal/linux/spawn/vfork"
)

// child is what a child works by. It writes to step, errno and spare alone.
type child struct {
	flags  uintptr
	path   *byte
	argv   []*byte
	files  []int
	maps   []idMap
	mounts []mountCall
	beside *child        // nil: none
	limits []limit
	mask   uint64        // signals that were blocked before, and are to be again
	life   [2]int        // a pipe whose write end the parent holds

	step  int // into steps
	errno syscall.Errno
	spare []int // its own numbers of files while they are put in their places; as long as files
}

// mountCall is a [Mount] as the kernel takes it.
type mountCall struct {
	source, target, kind, options *byte
	flags                         uintptr
	make                          bool
}

// limit is a limit that the child sets for itself (setrlimit(2)).
type limit struct {
	resource uintptr
	value    nofile.Limit
}

type idMap struct{ file, text []byte }

// maxFiles is how many descriptors a program can get. bwrap takes 9,000 words,
// and each descriptor needs three of them.
const maxFiles = 4096

// The steps of a child, for errors.
const (
	stepDeath = iota
	stepParent
	stepMaps
	stepMounts
	stepBeside
	stepFiles
	stepSignals
	stepLimit
	stepExec
)

var steps = [...]string{
	stepDeath: "prctl PR_SET_PDEATHSIG", stepParent: "look whether claudebox lives", stepMaps: "map user and group",
	stepMounts: "mount", stepBeside: "start a program beside it",
	stepFiles: "pass the descriptors", stepSignals: "reset the signals", stepLimit: "prlimit", stepExec: "execve",
}

// fork makes the child. What runs in it may neither allocate nor grow the
// stack nor return from here: the stack is the parent's.
//
//go:noinline
//go:norace
//go:nocheckptr
func (c *child) fork() (pid uintptr, errno syscall.Errno) {
	pid, failed := vfork.Fork(c.flags, &c.mask)
	if failed != 0 || pid != 0 {
		return pid, syscall.Errno(failed)
	}
	c.run()
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 1, 0, 0)
	}
}

// run executes the program, or notes what failed.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *child) run() {
	c.errno = c.dieWithParent()
	if c.errno == 0 {
		c.step = stepMaps
		c.errno = c.mapIDs()
	}
	if c.errno == 0 {
		c.step = stepMounts
		c.errno = c.makeMounts()
	}
	if c.errno == 0 && c.beside != nil {
		c.step = stepBeside
		c.errno = c.startBeside()
	}
	if c.errno == 0 {
		c.step = stepFiles
		c.errno = c.placeFiles()
	}
	if c.errno == 0 {
		c.step = stepSignals
		c.errno = c.resetSignals()
	}
	for i := 0; i < len(c.limits) && c.errno == 0; i++ {
		l := &c.limits[i]
		c.step = stepLimit
		c.errno = call6(syscall.SYS_PRLIMIT64, 0, l.resource, uintptr(unsafe.Pointer(&l.value)), 0)
	}
	if c.errno == 0 {
		c.step = stepExec
		var noEnvironment *byte
		c.errno = call6(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(c.path)), uintptr(unsafe.Pointer(&c.argv[0])),
			uintptr(unsafe.Pointer(&noEnvironment)), 0)
	}
}

//go:nosplit
//go:norace
func call6(number, a, b, c, d uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(number, a, b, c, d, 0, 0)
	return errno
}

// dieWithParent has the child killed when this thread ends, and ends it when
// that was before: in a pid namespace of its own it cannot ask for its parent.
// The pipe then has no writer any more.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *child) dieWithParent() syscall.Errno {
	c.step = stepDeath
	if errno := call6(syscall.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0); errno != 0 {
		return errno
	}
	c.step = stepParent
	call6(syscall.SYS_CLOSE, uintptr(c.life[1]), 0, 0, 0)
	poll := unix.PollFd{Fd: int32(c.life[0])}
	var now unix.Timespec
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	if errno == 0 && poll.Revents != 0 {
		return syscall.ESRCH
	}
	return errno
}

// mapIDs gives the namespace its one user and group.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *child) mapIDs() syscall.Errno {
	here := unix.AT_FDCWD
	for i := range c.maps {
		m := &c.maps[i]
		fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(&m.file[0])),
			syscall.O_WRONLY|syscall.O_CLOEXEC, 0, 0, 0)
		if errno == 0 {
			errno = call6(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&m.text[0])), uintptr(len(m.text)), 0)
		}
		if errno != 0 {
			return errno
		}
		call6(syscall.SYS_CLOSE, fd, 0, 0, 0)
	}
	return 0
}

//go:nosplit
//go:norace
//go:nocheckptr
func (c *child) makeMounts() syscall.Errno {
	for i := range c.mounts {
		m := &c.mounts[i]
		if m.make {
			if errno := call6(syscall.SYS_MKDIRAT, atCwd, uintptr(unsafe.Pointer(m.target)), 0o755, 0); errno != 0 {
				return errno
			}
		}
		_, _, errno := syscall.RawSyscall6(syscall.SYS_MOUNT, uintptr(unsafe.Pointer(m.source)), uintptr(unsafe.Pointer(m.target)),
			uintptr(unsafe.Pointer(m.kind)), m.flags, uintptr(unsafe.Pointer(m.options)), 0)
		if errno != 0 {
			return errno
		}
	}
	return 0
}

// atCwd is AT_FDCWD as an argument.
const atCwd = ^uintptr(99)

// startBeside starts the other program, as this one is started: it borrows the
// memory until it executes.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *child) startBeside() syscall.Errno {
	c.beside.mask = c.mask
	var all uint64
	pid, failed := vfork.Fork(vfork.Borrowing, &all)
	if failed != 0 {
		return syscall.Errno(failed)
	}
	if pid == 0 {
		c.beside.runBeside()
		for {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 1, 0, 0)
		}
	}
	return c.beside.errno // it has written there before this thread went on
}

// capabilities are the kernel's structs of capset(2), version 3.
type capabilities struct {
	version uint32
	pid     int32
	data    [2]struct{ effective, permitted, inheritable uint32 }
}

// runBeside executes the other program with one right, that to mount.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *child) runBeside() {
	for _, fd := range c.files {
		if c.errno = call6(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, 0, 0); c.errno != 0 {
			return
		}
	}
	const right = 1 << unix.CAP_SYS_ADMIN
	caps := capabilities{version: unix.LINUX_CAPABILITY_VERSION_3}
	caps.data[0].effective, caps.data[0].permitted, caps.data[0].inheritable = right, right, right
	c.errno = call6(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&caps)), uintptr(unsafe.Pointer(&caps.data)), 0, 0)
	if c.errno == 0 {
		c.errno = call6(syscall.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0)
	}
	if c.errno == 0 {
		c.errno = c.resetSignals()
	}
	if c.errno == 0 {
		var noEnvironment *byte
		c.errno = call6(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(c.path)), uintptr(unsafe.Pointer(&c.argv[0])),
			uintptr(unsafe.Pointer(&noEnvironment)), 0)
	}
}

// placeFiles gives every file its number. One whose number another will get is
// moved out of the way first.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *child) placeFiles() syscall.Errno {
	count := uintptr(len(c.files))
	for i, fd := range c.files {
		c.spare[i] = fd
		if fd >= i {
			continue
		}
		moved, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, count)
		if errno != 0 {
			return errno
		}
		c.spare[i] = int(moved)
	}
	for i := range c.files {
		fd, errno := c.spare[i], syscall.Errno(0)
		if fd == i {
			errno = call6(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, 0, 0)
		} else {
			errno = call6(syscall.SYS_DUP3, uintptr(fd), uintptr(i), 0, 0)
		}
		if errno != 0 {
			return errno
		}
	}
	return 0
}

// action is the kernel's struct sigaction. It has a restorer on both
// architectures.
type action struct{ handler, flags, restorer, mask uint64 }

// resetSignals takes back the handlers of this process, which must not run in
// the child, and then lets signals through again. What is ignored stays so, as
// execve(2) leaves it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *child) resetSignals() syscall.Errno {
	const signals, setSize, ignore = 64, 8, 1
	var was, usual action
	for n := uintptr(1); n <= signals; n++ {
		if call6(syscall.SYS_RT_SIGACTION, n, 0, uintptr(unsafe.Pointer(&was)), setSize) != 0 || was.handler <= ignore {
			continue
		}
		if errno := call6(syscall.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&usual)), 0, setSize); errno != 0 {
			return errno
		}
	}
	return call6(syscall.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.mask)), 0, setSize)
}
