package attack

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// reaches makes a call that no sandbox needs, with arguments that do nothing,
// and reports whether the kernel looked at them. A filter answers before that,
// with EPERM or ENOSYS.
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

// none is an invalid address, and an invalid descriptor.
const none = ^uintptr(0)

var kernelTries = []try{
	{"user namespaces", "all rights in a namespace of its own, and the kernel's bugs behind them", newUserNamespace},
	{"other namespaces", "mounts and networks of other processes", reaches("setns", unix.SYS_SETNS, none, 0)},
	{
		"mounts", "what lies below a mount, or another one over it",
		reaches("open_tree", unix.SYS_OPEN_TREE, none, 0, none),
	},
	{
		"typing into the terminal", "commands in your shell, by TIOCSTI",
		reaches("TIOCSTI", unix.SYS_IOCTL, 0, unix.TIOCSTI, none),
	},
	{
		"typing with high bits", "the same past a filter that compares 64 bits",
		reaches("TIOCSTI", unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<32, none),
	},
	{"the console's clipboard", "the same by TIOCLINUX", reaches("TIOCLINUX", unix.SYS_IOCTL, 0, tioclinux, none)},
	{
		"io_uring", "calls that no filter sees, and the kernel's bugs behind them",
		reaches("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, none),
	},
	{"userfaultfd", "time to win races in the kernel", reaches("userfaultfd", unix.SYS_USERFAULTFD, 1)},
	{
		"perf events", "what other programs do",
		reaches("perf_event_open", unix.SYS_PERF_EVENT_OPEN, none, 0, none, none),
	},
	{"bpf", "programs in the kernel", reaches("bpf", unix.SYS_BPF, none, none, 1)},
	{"keyrings: add", "keys of yours that the kernel keeps", reaches("add_key", unix.SYS_ADD_KEY, none, none)},
	{"keyrings: ask", "the same", reaches("request_key", unix.SYS_REQUEST_KEY, none, none)},
	{"keyrings: read", "the same", reaches("keyctl", unix.SYS_KEYCTL, 0, none)},
}

const tioclinux = 0x541c // ioctl_console(2)

// newUserNamespace tries to make a user namespace, and changes nothing else: a process of
// several threads may not enter one, so EINVAL says that one could be made.
func newUserNamespace(Targets) string {
	_, _, err := unix.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0)
	if err == 0 || errors.Is(err, unix.EINVAL) {
		return "a user namespace"
	}
	return ""
}

// family tries to make a socket of a family.
func family(domain, kind, protocol int) func(Targets) string {
	return func(Targets) string {
		fd, err := unix.Socket(domain, kind, protocol)
		if err != nil {
			return ""
		}
		unix.Close(fd)
		return "a socket of family " + strconv.Itoa(domain)
	}
}

// rareProtocol tries to make a socket of a protocol that few programs use.
func rareProtocol(t Targets) string {
	const smc = 256 // linux/in.h
	for protocol, kind := range map[int]int{
		unix.IPPROTO_UDPLITE: unix.SOCK_DGRAM, unix.IPPROTO_SCTP: unix.SOCK_STREAM, smc: unix.SOCK_STREAM,
	} {
		if got := family(unix.AF_INET, kind, protocol)(t); got != "" {
			return "protocol " + strconv.Itoa(protocol)
		}
	}
	return ""
}

var socketFamilyTries = []try{
	{"AF_ALG", "the kernel's cryptography and its bugs", family(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
	{"AF_VSOCK", "the host of a virtual machine, past network namespaces", family(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	{"AF_RXRPC", "the kernel's AFS and its bugs", family(unix.AF_RXRPC, unix.SOCK_DGRAM, unix.AF_INET)},
	{"AF_PACKET", "every packet of this machine", family(unix.AF_PACKET, unix.SOCK_RAW, 0)},
	{"rare protocols", "modules that the kernel loads for them, and their bugs", rareProtocol},
	{"raw sockets", "packets under another's name", family(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
	{"AF_BLUETOOTH", "devices in the room", family(unix.AF_BLUETOOTH, unix.SOCK_RAW, 1)},
	{"xfrm", "the kernel's IPsec and its bugs", family(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM)},
	{
		"netfilter", "the kernel's packet filter and its bugs",
		family(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER),
	},
}
