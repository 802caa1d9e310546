package seccomp_test

import (
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attack is something a child process tries on the terminal it is given.
// want is how it must end under the filter.
type attack struct {
	try  func() error
	want outcome
}

// outcome is how a child ended: by a signal, or with an error number (0: the
// attack succeeded).
type outcome struct {
	signal syscall.Signal
	errno  syscall.Errno
}

// attacks are named after what they would do. Where a call is broken off by
// the kernel for a reason of its own (a bad descriptor), that reason comes
// without the filter, and its absence proves the filter.
var attacks = map[string]attack{
	"TIOCSTI types into the user's shell (CVE-2017-5226)":    {ioctl(unix.TIOCSTI, newline()), eperm},
	"TIOCSTI with high bits set (CVE-2019-10063)":            {ioctl(unix.TIOCSTI|high, newline()), eperm},
	"TIOCLINUX pastes on a console (CVE-2023-28100)":         {ioctl(unix.TIOCLINUX, newline()), eperm},
	"TIOCLINUX with high bits set":                           {ioctl(unix.TIOCLINUX|high, newline()), eperm},
	"TIOCSETD changes the terminal's driver (CVE-2017-2636)": {ioctl(unix.TIOCSETD, discipline(nullDiscipline)), eperm},
	"kill ends claudebox by its group":                       {call(unix.SYS_KILL, 0, uintptr(unix.SIGKILL)), eperm},
	"O_ASYNC has the terminal's keys kill claudebox":         {call(unix.SYS_FCNTL, 0, unix.F_SETFL, unix.O_ASYNC), eperm},
	"O_ASYNC with high bits set":                             {call(unix.SYS_FCNTL, 0, unix.F_SETFL|high, unix.O_ASYNC|unix.O_NONBLOCK), eperm},
	"FIOASYNC has the terminal's keys kill claudebox":        {ioctl(fioasync, 0), outcome{}},
	"setpriority slows claudebox down":                       {call(unix.SYS_SETPRIORITY, unix.PRIO_PGRP, 0, 19), eperm},
	"ioprio_set slows claudebox down":                        {call(unix.SYS_IOPRIO_SET, 2, 0, 3<<13), eperm},
	"AF_VSOCK reaches past the network namespace":            {socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0), eafnosupport},
	"AF_PACKET listens to the wire":                          {socket(unix.AF_PACKET, unix.SOCK_RAW, 0), eafnosupport},
	"AF_INET with SOCK_PACKET is AF_PACKET":                  {socket(unix.AF_INET, unix.SOCK_PACKET, 0), eafnosupport},
	"AF_ALG opens the kernel's ciphers":                      {socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0), eafnosupport},
	"a type without a protocol is SCTP where that is loaded": {socket(unix.AF_INET, unix.SOCK_SEQPACKET, 0), eafnosupport},
	"a type without a protocol loads DCCP (CVE-2017-6074)":   {socket(unix.AF_INET6, unix.SOCK_DCCP|unix.SOCK_CLOEXEC, 0), eafnosupport},
	"socket has the kernel load a rare protocol":             {socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE), eprotonosupport},
	"socket has it load one for IPv6":                        {socket(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE), eprotonosupport},
	"setsockopt has it load a layer above TCP":               {call(unix.SYS_SETSOCKOPT, badDescriptor, unix.IPPROTO_TCP, unix.TCP_ULP, 0, 0), outcome{errno: unix.ENOPROTOOPT}},
	"netlink speaks to the packet filter":                    {socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER), eprotonosupport},
	"netlink lists the host's sockets":                       {socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG), eprotonosupport},
	"prlimit lets the host handle a crash":                   {call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 1, 0), outcome{}},
	"prlimit does by an address with no low bits":            {call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, high, 0), outcome{}},
	"setrlimit lets the host handle a crash":                 {call(unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, 1), outcome{}},
	"io_uring makes sockets past the filter":                 {call(unix.SYS_IO_URING_SETUP, 8, zeroes()), eperm},
	"keyctl reads the session keyring":                       {call(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, sessionKeyring, 1), eperm},
	"add_key leaves a key for later":                         {call(unix.SYS_ADD_KEY, text("user"), text("k"), text("v"), 1, processKeyring), eperm},
	"request_key finds a key of the host":                    {call(unix.SYS_REQUEST_KEY, text("user"), text("k"), 0, 0), eperm},
	"unshare makes a user namespace":                         {call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), eperm},
	"clone makes a user namespace":                           {clone(unix.CLONE_NEWUSER), eperm},
	"clone makes a user namespace with high bits set":        {clone(unix.CLONE_NEWUSER | high), eperm},
	"clone3 hides its flags (CVE-2021-41133)":                {call(unix.SYS_CLONE3, 0, cloneArgsSize), enosys},
	"setns joins another namespace":                          {call(unix.SYS_SETNS, badDescriptor, 0), eperm},
	"mount covers a protected file":                          {call(unix.SYS_MOUNT, text("x"), text("/nowhere"), text("tmpfs"), 0, 0), eperm},
	"umount uncovers a hidden file":                          {call(unix.SYS_UMOUNT2, text("/nowhere"), 0), eperm},
	"open_tree copies a mount (CVE-2021-41133)":              {call(unix.SYS_OPEN_TREE, badDescriptor, text("nowhere"), 0), enosys},
	"mount_setattr makes a read-only mount writable":         {call(unix.SYS_MOUNT_SETATTR, badDescriptor, text("nowhere"), 0, zeroes(), 32), enosys},
	"chroot leaves the root":                                 {call(unix.SYS_CHROOT, text("/nowhere")), eperm},
	"open_by_handle_at opens files by number":                {call(unix.SYS_OPEN_BY_HANDLE_AT, badDescriptor, 0, 0), eperm},
	"fchmod leaves a setuid program":                         {call(unix.SYS_FCHMOD, badDescriptor, unix.S_ISUID|0o755), eperm},
	"fchmod with high bits set":                              {call(unix.SYS_FCHMOD, badDescriptor, high|unix.S_ISUID|0o755), eperm},
	"fchmodat leaves a setuid program":                       {call(unix.SYS_FCHMODAT, badDescriptor, text("x"), unix.S_ISUID|0o755), eperm},
	"fchmodat2 leaves a setuid program":                      {call(unix.SYS_FCHMODAT2, badDescriptor, text("x"), unix.S_ISUID|0o755, 0), eperm},
	"openat makes a setuid program":                          {call(unix.SYS_OPENAT, badDescriptor, text("x"), unix.O_CREAT|unix.O_WRONLY, unix.S_ISUID|0o755), eperm},
	"openat makes one without a name":                        {call(unix.SYS_OPENAT, badDescriptor, text("x"), unix.O_TMPFILE|unix.O_WRONLY, unix.S_ISUID|0o755), eperm},
	"openat2 hides its mode":                                 {call(unix.SYS_OPENAT2, badDescriptor, text("x"), zeroes(), 24), enosys},
	"mknodat makes a setuid program":                         {call(unix.SYS_MKNODAT, badDescriptor, text("x"), unix.S_IFREG|unix.S_ISUID|0o755, 0), eperm},
	"bpf loads a program":                                    {call(unix.SYS_BPF, badDescriptor, 0, 0), eperm},
	"userfaultfd stops the kernel where the attacker likes":  {call(unix.SYS_USERFAULTFD, 1), eperm},
	"perf_event_open counts what others do":                  {call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0), eperm},
	"personality turns address randomisation off":            {call(unix.SYS_PERSONALITY, addrNoRandomize), eperm},
	"syslog reads the host's kernel log":                     {call(unix.SYS_SYSLOG, unix.SYSLOG_ACTION_SIZE_BUFFER, 0, 0), eperm},
}

// Outcomes of the attacks above.
var (
	eperm           = outcome{errno: unix.EPERM}
	enosys          = outcome{errno: unix.ENOSYS}
	eafnosupport    = outcome{errno: unix.EAFNOSUPPORT}
	eprotonosupport = outcome{errno: unix.EPROTONOSUPPORT}
)

const (
	high            = uintptr(1) << 40
	badDescriptor   = ^uintptr(0)
	processKeyring  = uintptr(0xfffffffe) // KEY_SPEC_PROCESS_KEYRING, an int
	sessionKeyring  = uintptr(0xfffffffd) // KEY_SPEC_SESSION_KEYRING
	addrNoRandomize = 0x0040000
	cloneArgsSize   = 64 // CLONE_ARGS_SIZE_VER0
	nullDiscipline  = 27 // N_NULL
	fioasync        = 0x5452
)

// Promise: nothing typed into your terminal.
func TestAttacks(t *testing.T) {
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) { prove(t, name, a.want) })
	}
}

// Promise: nothing typed into your terminal.
func TestAttacksThroughForeignCalls(t *testing.T) {
	for name, a := range foreign {
		t.Run(name, func(t *testing.T) {
			switch free := run(t, name, false); free {
			case outcome{signal: unix.SIGSEGV}, outcome{errno: unix.ENOEXEC}:
				t.Skipf("NOT RUN: this machine has no such calls: %v without the filter", free)
			}
			prove(t, name, a.want)
		})
	}
}

// call tries a system call with these arguments.
func call(number uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		return errno
	}
}

// ioctl tries a request on the terminal.
func ioctl(request, argument uintptr) func() error {
	return call(unix.SYS_IOCTL, 0, request, argument)
}

func socket(family, kind, protocol uintptr) func() error {
	return call(unix.SYS_SOCKET, family, kind, protocol)
}

// clone forks with flags; the copy ends at once, before Go's scheduler could
// notice that its other threads are gone.
func clone(flags uintptr) func() error {
	return func() error {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		return errno
	}
}

// text, newline, discipline and zeroes give the address of bytes that are never freed:
// package variables hold what points at them, as numbers.
func text(s string) uintptr { return keep(append([]byte(s), 0)) }

func newline() uintptr { return keep([]byte{'\n', 0}) }

func discipline(number byte) uintptr { return keep([]byte{number, 0, 0, 0}) }

func zeroes() uintptr { return keep(make([]byte, 4096)) }

// kept keeps the garbage collector away from what numbers point at.
var kept [][]byte

func keep(b []byte) uintptr {
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}
