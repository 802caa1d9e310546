package confine

import (
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/callfilter"
)

// Call allows a system call. A list may have several for the same number; one whose conditions hold is enough.
type Call struct {
	Number uintptr
	When   []Match // conditions, which must all hold; empty: the call is always allowed
}

// Match is a condition on one argument of a call.
type Match = callfilter.Match

// Always returns a list that allows calls with any arguments.
func Always(numbers ...uintptr) []Call {
	list := make([]Call, len(numbers))
	for i, n := range numbers {
		list[i] = Call{Number: n}
	}
	return list
}

// Runtime returns the calls that Go's runtime needs: to wait, to get memory, to start and signal this process's own
// threads, to end, and to read and write open files. Memory cannot be made executable.
func Runtime() []Call {
	notExecutable := []Match{{Arg: 2, Not: unix.PROT_EXEC}}
	return append(Always(slices.Concat(runtimeCalls, archCalls)...),
		Call{unix.SYS_MMAP, notExecutable}, Call{unix.SYS_MPROTECT, notExecutable},
		Call{unix.SYS_CLONE, []Match{{Arg: 0, Has: unix.CLONE_THREAD}}},
		Call{unix.SYS_TGKILL, []Match{{Arg: 0, OneOf: []uint32{uint32(unix.Getpid())}}}},
		Call{unix.SYS_FCNTL, []Match{{Arg: 1, OneOf: descriptorCommands}}},
	)
}

// descriptorCommands are the commands of fcntl(2) that concern a descriptor alone.
var descriptorCommands = []uint32{unix.F_GETFL, unix.F_SETFL, unix.F_GETFD, unix.F_SETFD, unix.F_DUPFD_CLOEXEC}

// runtimeCalls are the calls of [Runtime] with any arguments, without [archCalls].
var runtimeCalls = []uintptr{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64,
	unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_LSEEK,
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_FUTEX,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_RESTART_SYSCALL,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRANDOM, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// Sockets returns the calls for sockets that a process was given: to accept connections, send and receive, and pass
// descriptors. No call that makes or connects a socket is among them.
func Sockets() []Call {
	return Always(
		unix.SYS_ACCEPT4, unix.SYS_RECVMSG, unix.SYS_SENDMSG, unix.SYS_RECVFROM, unix.SYS_SENDTO, unix.SYS_SHUTDOWN,
		unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT,
	)
}

// reading returns the calls to open, list and look at files, without writing. Landlock limits which files.
func reading() []Call {
	writing := uint32(unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC)
	return append(Always(unix.SYS_GETDENTS64, unix.SYS_NEWFSTATAT, unix.SYS_READLINKAT),
		Call{unix.SYS_OPENAT, []Match{{Arg: 2, Not: writing}}})
}
