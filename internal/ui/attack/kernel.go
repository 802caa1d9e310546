package attack

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// reaches makes a call that no sandbox needs, with arguments that do nothing,
// and reports whether the kernel looked at them. A filter answers before that,
// with one of two errors.
func reaches(what string, number uintptr, args ...uintptr) func(Targets) string {
	return func(Targets) string {
		var a [6]uintptr
		copy(a[:], args)
		r, _, err := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		switch {
		case err == 0:
			if int(r) > 2 {
				unix.Close(int(r))
			}
			return what
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSYS):
			return ""
		}
		return what + " (" + err.Error() + ")"
	}
}

// none is an address and a descriptor that nobody has.
const none = ^uintptr(0)

var kernelTries = []try{
	{
		name: "user namespaces", gets: "all rights in a namespace of its own, and the kernel's bugs behind them",
		run: newUserNamespace,
	},
	{
		name: "other namespaces", gets: "mounts and networks of other processes",
		run: reaches("setns", unix.SYS_SETNS, none, 0),
	},
	{
		name: "mounts", gets: "what lies below a mount, or another one over it",
		run: reaches("open_tree", unix.SYS_OPEN_TREE, none, 0, none),
	},
	{
		name: "typing into the terminal", gets: "commands in your shell, by TIOCSTI",
		run: reaches("TIOCSTI", unix.SYS_IOCTL, 0, unix.TIOCSTI, none),
	},
	{
		name: "typing with high bits", gets: "the same past a filter that compares 64 bits",
		run: reaches("TIOCSTI", unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<32, none),
	},
	{
		name: "the console's clipboard", gets: "the same by TIOCLINUX",
		run: reaches("TIOCLINUX", unix.SYS_IOCTL, 0, tioclinux, none),
	},
	{
		name: "io_uring", gets: "calls that no filter sees, and the kernel's bugs behind them",
		run: reaches("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, none),
	},
	{
		name: "userfaultfd", gets: "time to win races in the kernel",
		run: reaches("userfaultfd", unix.SYS_USERFAULTFD, 1),
	},
	{
		name: "perf events", gets: "what other programs do",
		run: reaches("perf_event_open", unix.SYS_PERF_EVENT_OPEN, none, 0, none, none),
	},
	{name: "bpf", gets: "programs in the kernel", run: reaches("bpf", unix.SYS_BPF, none, none, 1)},
	{
		name: "keyrings: add", gets: "keys of yours that the kernel keeps",
		run: reaches("add_key", unix.SYS_ADD_KEY, none, none),
	},
	{name: "keyrings: ask", gets: "the same", run: reaches("request_key", unix.SYS_REQUEST_KEY, none, none)},
	{name: "keyrings: read", gets: "the same", run: reaches("keyctl", unix.SYS_KEYCTL, 0, none)},
}

const tioclinux = 0x541c // ioctl_console(2)

// newUserNamespace tries in a call that would change nothing else: a process of
// several threads may not enter one, so EINVAL says that it could be made.
func newUserNamespace(Targets) string {
	_, _, err := unix.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0)
	if err == 0 || errors.Is(err, unix.EINVAL) {
		return "a user namespace"
	}
	return ""
}

// family tries to make a socket.
func family(what string, domain, kind, protocol int) func(Targets) string {
	return func(Targets) string {
		fd, err := unix.Socket(domain, kind, protocol)
		if err != nil {
			return ""
		}
		unix.Close(fd)
		return "a socket of family " + strconv.Itoa(domain) + " for " + what
	}
}

var socketTries = []try{
	{
		name: "AF_ALG", gets: "the kernel's cryptography and its bugs",
		run: family("AF_ALG", unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
	},
	{
		name: "AF_VSOCK", gets: "the host of a virtual machine, past every network namespace",
		run: family("AF_VSOCK", unix.AF_VSOCK, unix.SOCK_STREAM, 0),
	},
	{
		name: "AF_RXRPC", gets: "the kernel's AFS and its bugs",
		run: family("AF_RXRPC", unix.AF_RXRPC, unix.SOCK_DGRAM, unix.AF_INET),
	},
	{
		name: "AF_PACKET", gets: "every packet of this machine",
		run: family("AF_PACKET", unix.AF_PACKET, unix.SOCK_RAW, 0),
	},
	{
		name: "raw sockets", gets: "packets under another's name",
		run: family("raw IP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
	},
	{
		name: "AF_BLUETOOTH", gets: "devices in the room",
		run: family("AF_BLUETOOTH", unix.AF_BLUETOOTH, unix.SOCK_RAW, 1),
	},
	{
		name: "xfrm", gets: "the kernel's IPsec and its bugs",
		run: family("xfrm", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM),
	},
	{
		name: "netfilter", gets: "the kernel's packet filter and its bugs",
		run: family("netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER),
	},
}
