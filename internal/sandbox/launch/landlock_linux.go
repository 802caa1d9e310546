package launch

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// scopeABI is the first Landlock version that can scope abstract Unix
// sockets (landlock(7): Linux 6.12).
const scopeABI = 6

// ClosesAbstractSockets reports whether this kernel can prevent a sandbox in the host's
// network namespace from connecting to abstract sockets, on which X11 and D-Bus listen.
func ClosesAbstractSockets() bool {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0 && abi >= scopeABI
}

// isolateAbstractSockets puts the calling thread, and so bwrap, into a Landlock domain
// whose processes can connect only to abstract sockets of the same domain. It does so in
// tier full only: the other tiers have a network namespace, which has the same effect.
// On a kernel that cannot do it, it does nothing; the audit has shown that before.
func isolateAbstractSockets(tier string) error {
	if tier != "full" || !ClosesAbstractSockets() {
		return nil
	}
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return &diag.Error{Op: "make a landlock ruleset", Err: errno}
	}
	defer unix.Close(int(fd))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &diag.Error{Op: "set no_new_privs", Err: err}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return &diag.Error{Op: "close abstract sockets by landlock", Err: errno}
	}
	return nil
}
