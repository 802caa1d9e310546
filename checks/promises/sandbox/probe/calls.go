package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// high are bits beyond the 32 that the kernel looks at in an ioctl's number
// (CVE-2019-10063).
const high = 1 << 32

// calls are system calls that must not succeed inside, by name. Standard input
// is a terminal.
var calls = []struct {
	name string
	try  func() error
}{
	{"TIOCSTI", terminal(unix.TIOCSTI)},
	{"TIOCSTI with high bits", terminal(unix.TIOCSTI | high)},
	{"TIOCLINUX", terminal(unix.TIOCLINUX)},
	{"TIOCLINUX with high bits", terminal(unix.TIOCLINUX | high)},
	{"AF_VSOCK", socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	{"AF_PACKET", socket(unix.AF_PACKET, unix.SOCK_RAW, 0)},
	{"raw socket", socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
	{"unshare user", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }},
	{"clone user", cloneUser},
	{"setns user", setnsUser},
	{"mount tmpfs", func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") }},
	{"remount store", func() error {
		return unix.Mount("", "/nix/store", "", unix.MS_REMOUNT|unix.MS_BIND, "")
	}},
	{"unmount proc", func() error { return unix.Unmount("/proc", unix.MNT_DETACH) }},
	{"fsopen", func() error { return second(unix.Fsopen("tmpfs", 0)) }},
	{"open_tree", func() error { return second(unix.OpenTree(unix.AT_FDCWD, "/tmp", unix.OPEN_TREE_CLONE)) }},
	{"pivot_root", func() error { return unix.PivotRoot("/tmp", "/tmp") }},
	{"chroot", func() error { return unix.Chroot("/tmp") }},
	{"mknod", func() error { return unix.Mknod("/tmp/null", unix.S_IFCHR|0o666, 1<<8|3) }},
	{"sethostname", func() error { return unix.Sethostname([]byte("other")) }},
	{"keyctl", func() error { return second(unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)) }},
	{"add_key", func() error { return second(unix.AddKey("user", "x", []byte("y"), unix.KEY_SPEC_USER_KEYRING)) }},
	{"bpf", raw(unix.SYS_BPF)},
	{"perf_event_open", raw(unix.SYS_PERF_EVENT_OPEN)},
	{"userfaultfd", raw(unix.SYS_USERFAULTFD)},
	{"io_uring_setup", raw(unix.SYS_IO_URING_SETUP)},
	{"kexec_load", raw(unix.SYS_KEXEC_LOAD)},
}

func tryCalls() error {
	for _, c := range calls {
		fmt.Printf("%s: %s\n", c.name, outcome(c.try()))
	}
	return nil
}

func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "success"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func second[T any](_ T, err error) error { return err }

// terminal types an x into the terminal at standard input.
func terminal(request uintptr) func() error {
	return func() error {
		text := [2]byte{'x'}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, os.Stdin.Fd(), request, uintptr(unsafe.Pointer(&text)))
		return errorOf(errno)
	}
}

func socket(family, kind, protocol int) func() error {
	return func() error { return second(unix.Socket(family, kind, protocol)) }
}

// raw makes a call with no argument that makes sense: where it is allowed, the
// kernel complains of them, and not that it is forbidden.
func raw(number uintptr) func() error {
	return func() error {
		_, _, errno := unix.Syscall6(number, 0, 0, 0, 0, 0, 0)
		return errorOf(errno)
	}
}

func errorOf(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// cloneUser starts a process in a user namespace of its own.
func cloneUser() error {
	process, err := os.StartProcess("/proc/self/exe", []string{"probe", "none"}, &os.ProcAttr{
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER},
	})
	if err != nil {
		return err
	}
	_, err = process.Wait()
	return err
}

// setnsUser enters the user namespace above, whose rights reach further.
func setnsUser() error {
	own, err := os.Open("/proc/self/ns/user")
	if err != nil {
		return err
	}
	defer own.Close()
	parent, err := unix.IoctlRetInt(int(own.Fd()), unix.NS_GET_PARENT)
	if err != nil {
		return err
	}
	return unix.Setns(parent, unix.CLONE_NEWUSER)
}
