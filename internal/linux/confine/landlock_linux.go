package confine

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights that Landlock handles, by the version in which they came
// (landlock(7)).
const (
	readRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileRights = unix.LANDLOCK_ACCESS_FS_READ_FILE

	rightsOf1 = 1<<13 - 1 // EXECUTE to MAKE_SYM
)

var rightsSince = map[uintptr]uint64{
	2: unix.LANDLOCK_ACCESS_FS_REFER,
	3: unix.LANDLOCK_ACCESS_FS_TRUNCATE,
	5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
}

// errNoLandlock says that this kernel has none, or has it switched off.
var errNoLandlock = errors.New("this kernel has no Landlock (CONFIG_SECURITY_LANDLOCK, or `lsm=` on its command line)")

// landlock takes the file system away, but for what may be read.
func landlock(read []string) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		if len(read) == 0 {
			return nil // nothing can be opened anyway: the filter has no call for it
		}
		return errNoLandlock
	}
	attr := unix.LandlockRulesetAttr{Access_fs: rights(version)}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Access_fs), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(ruleset))
	for _, path := range read {
		if err := allowReading(ruleset, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	_, _, errno = syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// rights are all that a version of Landlock can take away.
func rights(version uintptr) uint64 {
	all := uint64(rightsOf1)
	for since, right := range rightsSince {
		if version >= since {
			all |= right
		}
	}
	return all
}

func allowReading(ruleset uintptr, path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: fileRights, Parent_fd: int32(fd)}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		attr.Allowed_access = readRights
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset,
		unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
