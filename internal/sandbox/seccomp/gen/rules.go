package main

import (
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/callfilter"
)

// rule refuses system calls. Of several rules for one call the first that
// matches decides; a call that none matches is allowed.
type rule struct {
	calls string // names of the calls, separated by blanks
	only  string // GOARCH, for calls that the other architecture never had
	errno syscall.Errno
	// pretends means that the caller is told that it worked, instead of an error.
	pretends bool
	when     []match // all must hold; none: always
	why      string
}

// match is a condition on the low 32 bits of one argument. The kernel looks at no more
// of a number: it takes the argument as an int, or refuses high bits itself. To compare
// all 64 bits was the fault of CVE-2019-10063. An address has high bits, see [highBit].
type match = callfilter.Match

func oneOf(arg uint32, values ...uint32) match  { return match{Arg: arg, OneOf: values} }
func noneOf(arg uint32, values ...uint32) match { return match{Arg: arg, NoneOf: values} }
func anyBit(arg, bits uint32) match             { return match{Arg: arg, Has: bits} }
func highBit(arg uint32) match                  { return match{Arg: arg, High: true, Has: anyOf32} }

// anyOf32 has all bits of one half of an argument.
const anyOf32 = 1<<32 - 1

// newNamespace has all flags of clone(2) that make a namespace. CLONE_NEWTIME is not
// among them: its bit is part of clone's exit signal, so only unshare has it.
const newNamespace = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Values of personality(2) that programs use every day: plain Linux, what
// linux32 and --uname-2.6 set, and the question which one is set. The list is
// that of Docker's default profile.
const (
	perLinux32 = 0x0008
	uname26    = 0x20000
	perQuery   = 0xffffffff
)

// rareType has a bit of each socket type but SOCK_STREAM, SOCK_DGRAM and SOCK_RAW (1, 2, 3):
// SOCK_RDM, SOCK_SEQPACKET, SOCK_DCCP and SOCK_PACKET (4, 5, 6, 10). SOCK_NONBLOCK and
// SOCK_CLOEXEC are higher bits.
const rareType = 0x4 | 0x8

// fioasync is FIOASYNC (asm-generic/ioctls.h).
const fioasync = 0x5452

// own is the process or group id that stands for the caller's own. The agent is in the
// process group of claudebox and of whoever started that (a script, make). That group
// has no id inside the pid namespace, so own is the only way to name it from inside
// (pid_namespaces(7)).
const own = 0

// jobSignals are the signals that a terminal and a shell send to a whole job, and by
// which claudebox is not killed or stopped without control. 0 sends nothing.
var jobSignals = []uint32{
	0, uint32(unix.SIGHUP), uint32(unix.SIGINT), uint32(unix.SIGQUIT), uint32(unix.SIGTERM), uint32(unix.SIGCHLD),
	uint32(unix.SIGCONT), uint32(unix.SIGTSTP), uint32(unix.SIGTTIN), uint32(unix.SIGTTOU), uint32(unix.SIGURG),
	uint32(unix.SIGWINCH),
}

// creates are the flags with which open(2) uses its mode argument: O_CREAT, and the bit
// that O_TMPFILE has in addition to O_DIRECTORY.
const creates = unix.O_CREAT | 0x400000

// ioprioGroup is IOPRIO_WHO_PGRP (ioprio_set(2)).
const ioprioGroup = 2

// rules are the calls that the sandbox refuses. They follow common/flatpak-run.c of
// flatpak (setup_seccomp, August 2026), and return the same errors: ENOSYS for calls
// whose callers fall back to an older one, EPERM for others. Unlike there ptrace is
// allowed, because debuggers are used inside. Rules that flatpak does not have say so.
// The constants of package unix that are used here are the same on amd64 and arm64.
var rules = []rule{
	{
		calls: "ioctl", errno: unix.EPERM, when: []match{oneOf(1, unix.TIOCSTI, unix.TIOCLINUX)},
		why: "types into the user's shell (CVE-2017-5226), or pastes into it on a console (CVE-2023-28100)",
	},
	{
		calls: "ioctl", errno: unix.EPERM, when: []match{oneOf(1, unix.TIOCSETD)},
		why: "puts a driver with a record (CVE-2017-2636) behind the user's terminal, where it stays; not flatpak's",
	},

	{
		calls: "kill", errno: unix.EPERM, when: []match{oneOf(0, own), noneOf(1, jobSignals...)},
		why: "kills or halts claudebox, which then neither watches nor judges what the agent left; not flatpak's",
	},
	{
		calls: "fcntl", errno: unix.EPERM, when: []match{oneOf(1, unix.F_SETFL), anyBit(2, unix.O_ASYNC)},
		why: "as kill: the kernel signals the group that the terminal belongs to, be it claudebox's or that of your " +
			"editor, at each key and by any signal (F_SETSIG); not flatpak's",
	},
	{
		calls: "ioctl", pretends: true, when: []match{oneOf(1, fioasync)},
		why: "as fcntl; nginx ends if it cannot",
	},
	{
		calls: "setpriority", errno: unix.EPERM, when: []match{oneOf(0, unix.PRIO_PGRP), oneOf(1, own)},
		why: "slows claudebox down, and what else is in its group; not flatpak's",
	},
	{
		calls: "ioprio_set", errno: unix.EPERM, when: []match{oneOf(0, ioprioGroup), oneOf(1, own)},
		why: "as setpriority",
	},

	{
		calls: "socket socketpair", errno: unix.EAFNOSUPPORT,
		when: []match{noneOf(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)},
		why:  "AF_VSOCK ignores network namespaces; the others are attack surface that no agent needs",
	},
	{
		calls: "socket socketpair", errno: unix.EAFNOSUPPORT,
		when: []match{oneOf(0, unix.AF_INET, unix.AF_INET6), anyBit(1, rareType)},
		why: "the kernel turns AF_INET with SOCK_PACKET into AF_PACKET, and takes one of the other types, of which " +
			"no protocol is said, for DCCP or SCTP; not flatpak's",
	},
	{
		calls: "socket", errno: unix.EPROTONOSUPPORT,
		when: []match{
			oneOf(0, unix.AF_INET, unix.AF_INET6),
			noneOf(2, unix.IPPROTO_IP, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6,
				unix.IPPROTO_MPTCP),
		},
		why: "the kernel loads a module for SCTP, DCCP, SMC and other rare protocols when it is asked for one; not " +
			"flatpak's",
	},
	{
		calls: "setsockopt", errno: unix.ENOPROTOOPT, when: []match{oneOf(1, unix.IPPROTO_TCP), oneOf(2, unix.TCP_ULP)},
		why: "the kernel loads a module for TLS and other layers above TCP; callers do that themselves then, as on " +
			"kernels before 4.13; not flatpak's",
	},
	{
		calls: "socket socketpair", errno: unix.EPROTONOSUPPORT,
		when: []match{oneOf(0, unix.AF_NETLINK), noneOf(2, unix.NETLINK_ROUTE)},
		why:  "interfaces and routes are all that resolvers and runtimes ask netlink for; not flatpak's",
	},
	{
		calls: "io_uring_setup io_uring_enter io_uring_register", errno: unix.EPERM,
		why: "IORING_OP_SOCKET makes sockets of any family past this filter; Docker's, with the same error, not " +
			"flatpak's",
	},

	{
		calls: "chmod", only: "amd64", errno: unix.EPERM, when: []match{anyBit(1, unix.S_ISUID)},
		why: "leaves a program that runs as the user for whoever starts it; not flatpak's",
	},
	{calls: "fchmod", errno: unix.EPERM, when: []match{anyBit(1, unix.S_ISUID)}, why: "as chmod"},
	{calls: "fchmodat fchmodat2 mknodat", errno: unix.EPERM, when: []match{anyBit(2, unix.S_ISUID)}, why: "as chmod"},
	{
		calls: "creat mknod", only: "amd64", errno: unix.EPERM, when: []match{anyBit(1, unix.S_ISUID|unix.S_ISGID)},
		why: "as chmod",
	},
	{
		calls: "open", only: "amd64", errno: unix.EPERM,
		when: []match{anyBit(1, creates), anyBit(2, unix.S_ISUID|unix.S_ISGID)},
		why:  "as chmod; without these flags nobody looks at the mode",
	},
	{
		calls: "openat", errno: unix.EPERM, when: []match{anyBit(2, creates), anyBit(3, unix.S_ISUID|unix.S_ISGID)},
		why: "as open",
	},
	{
		calls: "openat2", errno: unix.ENOSYS,
		why: "its mode lies in memory, where no filter can look; callers fall back to openat",
	},

	{calls: "setns mount umount2 pivot_root chroot", errno: unix.EPERM, why: "changes what the sandbox sees"},
	{
		calls: "unshare", errno: unix.EPERM, when: []match{anyBit(0, newNamespace|unix.CLONE_NEWTIME)},
		why: "a user namespace of its own gives back capabilities; CLONE_FS and CLONE_FILES stay, Nix's " +
			"downloads use them",
	},
	{calls: "clone", errno: unix.EPERM, when: []match{anyBit(0, newNamespace)}, why: "as unshare"},
	{
		calls: "clone3", errno: unix.ENOSYS,
		why: "its flags lie in memory, where no filter can look (CVE-2021-41133); every libc falls back to clone",
	},
	{
		calls: "open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr", errno: unix.ENOSYS,
		why: "the newer way to mount (CVE-2021-41133); callers fall back to mount, which says EPERM",
	},
	{
		calls: "open_by_handle_at", errno: unix.EPERM,
		why: "opens files by number, wherever they are mounted; Docker's, not flatpak's",
	},

	{
		calls: "add_key keyctl request_key", errno: unix.EPERM,
		why: "the kernel's keyring belongs to the user, not to a namespace: it may hold secrets of the host",
	},
	{
		calls: "setrlimit", pretends: true, when: []match{oneOf(0, unix.RLIMIT_CORE)},
		why: "the limit of 1 byte, which claudebox sets, keeps the kernel from starting the host's handler of core " +
			"files for a crash inside, as root and with what the agent chose; ssh-agent and gpg end if they cannot " +
			"set it; not flatpak's",
	},
	{
		calls: "prlimit64", pretends: true, when: []match{oneOf(1, unix.RLIMIT_CORE), anyBit(2, anyOf32)},
		why: "as setrlimit; a null address only asks",
	},
	{
		calls: "prlimit64", pretends: true, when: []match{oneOf(1, unix.RLIMIT_CORE), highBit(2)},
		why: "as setrlimit",
	},
	{calls: "syslog", errno: unix.EPERM, why: "reads the host's kernel log"},
	{calls: "quotactl quotactl_fd", errno: unix.EPERM, why: "reads how much the host's users store"},
	{calls: "acct", errno: unix.EPERM, why: "turns the host's process accounting off"},

	{
		calls: "perf_event_open bpf userfaultfd", errno: unix.EPERM,
		why: "source of many kernel exploits, of none of the agent's work; the last two are Docker's, not flatpak's",
	},
	{
		calls: "mbind move_pages migrate_pages get_mempolicy set_mempolicy set_mempolicy_home_node", errno: unix.EPERM,
		why: "seldom used and hard to get right in the kernel; libnuma takes EPERM for a machine without NUMA",
	},
	{
		calls: "personality", errno: unix.EPERM,
		when: []match{noneOf(0, 0, perLinux32, uname26, perLinux32|uname26, perQuery)},
		why:  "turns off address randomisation and other protections of what is run next",
	},
	{
		calls: "kexec_load kexec_file_load init_module finit_module delete_module", errno: unix.EPERM,
		why: "replaces or extends the host's kernel; Docker's, not flatpak's",
	},
	{
		calls: "uselib modify_ldt", only: "amd64", errno: unix.EPERM,
		why: "old, unused, and a source of information leaks",
	},
}
