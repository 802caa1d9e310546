package doctor

import (
	"math"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/release"
	"claudebox/internal/sandbox/launch"
)

// facility is a feature of the kernel that a launch cannot do without.
type facility struct {
	name  string
	since string // of Linux
	use   func() error
}

// facilities are what every launch uses, the newest last.
var facilities = []facility{
	{"memfd_create", "3.17", sealMemory},
	{"seccomp filters", "4.14", askForFilters},
	{"openat2", "5.6", openWithoutLinks},
	{"close_range", "5.11", func() error { // of descriptors that cannot be open
		return unix.CloseRange(math.MaxInt32, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	}},
	{"mount_setattr", "5.12", func() error { // which a user may not use outside of a namespace
		err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{})
		if err == unix.ENOSYS {
			return err
		}
		return nil
	}},
	{"limits for each user namespace", "5.14", countsByNamespace},
}

// kernel uses each facility once.
func kernel(examination) Finding {
	return judgeKernel(release.Name(), facilities)
}

func judgeKernel(release string, needed []facility) Finding {
	var names, missing []string
	newest := ""
	for _, f := range needed {
		names = append(names, f.name)
		if f.use() != nil {
			missing, newest = append(missing, f.name), f.since
		}
	}
	if len(missing) == 0 {
		return ok("Linux " + release + " has " + strings.Join(names, ", "))
	}
	return failed("Linux "+release+" has no "+strings.Join(missing, ", ")+", or a container forbids it",
		"use Linux "+newest+" or newer, outside of containers that filter system calls")
}

// countsByNamespace fails where the kernel counts all processes of a user together, in whichever namespace.
func countsByNamespace() error {
	if !release.IsAtLeast(5, 14) {
		return unix.ENOSYS
	}
	return nil
}

func openWithoutLinks() error {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/",
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func sealMemory() error {
	fd, err := unix.MemfdCreate("check", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
	return err
}

// askForFilters asks for the action that the sandbox's filter ends programs
// with (seccomp(2), SECCOMP_GET_ACTION_AVAIL).
func askForFilters() error {
	const getActionAvailable = 2
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, getActionAvailable, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return errno
	}
	return nil
}

// abstractSockets are closed by Landlock where the network is the host's.
func abstractSockets(examination) Finding {
	if launch.ClosesAbstractSockets() {
		return ok("closed to the sandbox by Landlock")
	}
	return warning("this kernel cannot close them: X11 and D-Bus of this machine are within reach in tier full",
		"use Linux 6.12 or newer with Landlock, or another tier")
}

// terminalInjection is about ioctl TIOCSTI, with which a program types into
// the terminal it runs in. The sandbox's filter refuses it on every kernel.
func terminalInjection(examination) Finding {
	setting, _ := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti") // older kernels have none, and let programs type
	return judgeInjection(setting)
}

func judgeInjection(setting []byte) Finding {
	if strings.TrimSpace(string(setting)) == "0" {
		return ok("off in the kernel, and refused by the sandbox")
	}
	return info("on in the kernel (dev.tty.legacy_tiocsti), refused by the sandbox")
}
