package confine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/callfilter"
)

// Options say what a process may still use. With the zero value that is its standard descriptors and the calls of
// [Runtime].
type Options struct {
	// Keep are the descriptors that stay open besides 0, 1 and 2.
	Keep []int
	// Calls are the system calls that are allowed besides those of [Runtime].
	Calls []Call
	// Read are files and folders that may be read, with everything below them. If it is empty no file can be opened.
	Read []string
	// Network says that the process uses sockets of the internet: Landlock leaves these alone.
	Network bool
	// Files is how many descriptors may be open at once, at most; 0: the limit stays as it is.
	Files uint64
}

// Self confines this process, with all of its threads, for good. It returns an error if a protection could not be set
// up; the process must not go on then.
//
// The kernel's filter of system calls is required. Landlock is used if the kernel has it, and is required if o.Read
// is not empty.
func Self(o Options) error {
	if err := closeOthers(o.Keep); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	if err := limit(o.Files); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	if err := signals(); err != nil {
		return err
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		return fmt.Errorf("set no_new_privs: %w", errno)
	}
	if err := landlock(o); err != nil {
		return fmt.Errorf("confine it by Landlock: %w", err)
	}
	calls := slices.Concat(Runtime(), o.Calls)
	if len(o.Read) > 0 {
		calls = append(calls, reading()...)
	}
	if err := filter(calls); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

// closeOthers closes every descriptor but the standard ones, those in keep, and those by which Go's runtime waits for
// events (epoll, eventfd).
func closeOthers(keep []int) error {
	const folder = "/proc/self/fd"
	list, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range list {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 || slices.Contains(keep, fd) {
			continue
		}
		// ReadDir's own descriptor of the folder is in the list too, and closed by now.
		kind, err := os.Readlink(folder + "/" + entry.Name())
		if err != nil || strings.HasPrefix(kind, "anon_inode:[event") {
			continue
		}
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
	return nil
}

// limit forbids core files and attaching a debugger, so that nothing of the process's memory gets out. files is how
// many descriptors may be open at once; 0: the limit stays as it is.
func limit(files uint64) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return err
	}
	if files == 0 {
		return nil
	}
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		return err
	}
	files = min(files, now.Max)
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: files})
}

// signals returns an error if no signal can wait for a thread of this process: [syscall.AllThreadsSyscall] sends one to
// each, and waits for good for a thread that got none (Linux: kernel/signal.c, EAGAIN).
func signals() error {
	const enough = 64 // threads that Go's runtime may have by now, and other processes that do the same
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, count, _ := strings.Cut(string(text), "\nSigQ:")
	var now, most uint64
	if _, err := fmt.Sscanf(count, "%d/%d", &now, &most); err != nil {
		return fmt.Errorf("count the signals that wait: %w", err)
	}
	if now+enough > most {
		return fmt.Errorf("%d signals wait for this user's processes, of %d that may (`ulimit -i`): "+
			"a program has taken them; end it, and start again", now, most)
	}
	return nil
}

// program returns the seccomp filter that allows these calls. Any other call fails with EPERM; one through another
// architecture's table ends the process.
func program(calls []Call) ([]unix.SockFilter, error) {
	rules := make([]callfilter.Rule, len(calls))
	for i, c := range calls {
		rules[i] = callfilter.Rule{Number: c.Number, When: c.When, Then: unix.SECCOMP_RET_ALLOW}
	}
	body, err := callfilter.Rules(rules)
	p := append(callfilter.Entry(architecture), body...)
	return append(p, callfilter.Return(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM))), err
}

// filter installs the seccomp filter that allows these calls, for all threads.
func filter(calls []Call) error {
	p, err := program(calls)
	if err != nil {
		return err
	}
	if len(p) > unix.BPF_MAXINSNS {
		return errors.New("bug: the filter is too long")
	}
	fprog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	if thread != 0 {
		return errors.New("bug: a thread has a filter of its own")
	}
	return nil
}

// Rights in Landlock's terms (landlock(7)).
const (
	folderRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR // for a folder that may be read
	fileRights   = unix.LANDLOCK_ACCESS_FS_READ_FILE                                    // for a file that may be read

	firstRights = 1<<13 - 1 // EXECUTE to MAKE_SYM: all rights that version 1 handles
)

// rightsSince are the rights that later versions handle besides, by version.
var rightsSince = map[uintptr]uint64{
	2: unix.LANDLOCK_ACCESS_FS_REFER,
	3: unix.LANDLOCK_ACCESS_FS_TRUNCATE,
	5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
	9: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX,
}

// Versions of Landlock that handle more than files, and the fix without which a thread cannot signal another of its
// own process: they are put into domains of their own.
const (
	tcpSince, scopesSince = 4, 6
	signalErratum         = 1 << 1
)

// kernel is what a kernel's Landlock can do.
type kernel struct {
	version, errata uintptr
	udp             bool
}

// errNoLandlock is the error of [Self] if Landlock is required and this kernel has none, or has it switched off.
var errNoLandlock = errors.New("this kernel has no Landlock (CONFIG_SECURITY_LANDLOCK, or `lsm=` on its command line)")

// landlock forbids all access to the file system, except for reading the files and folders in o.Read, with everything
// below them; and as far as the kernel can, sockets of the internet unless o.Network, sockets of other processes by a
// path or an abstract name, and signals to them.
func landlock(o Options) error {
	k, err := ask()
	if err != nil {
		if len(o.Read) == 0 {
			return nil // nothing can be opened anyway: the filter has no call for it
		}
		return err
	}
	attr := k.handled(o.Network)
	ruleset, err := create(attr)
	if err != nil {
		return err
	}
	defer unix.Close(int(ruleset))
	for _, path := range o.Read {
		if err := allowReading(ruleset, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// ask asks what the kernel's Landlock can do.
func ask() (k kernel, err error) {
	var errno syscall.Errno
	k.version, _, errno = unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return k, errNoLandlock
	}
	if k.version < scopesSince {
		return k, nil
	}
	k.errata, _, errno = unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	if errno != 0 {
		k.errata = 0 // a kernel from before there was a question
	}
	if ruleset, err := create(unix.LandlockRulesetAttr{Handled_access_net: udpRights}); err == nil {
		k.udp = true
		unix.Close(int(ruleset))
	}
	return k, nil
}

const (
	tcpRights = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	udpRights = unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
)

// handled returns all that a kernel can take away from a process.
func (k kernel) handled(network bool) (attr unix.LandlockRulesetAttr) {
	attr.Handled_access_fs = rights(k.version)
	if !network && k.version >= tcpSince {
		attr.Handled_access_net = tcpRights
		if k.udp {
			attr.Handled_access_net |= udpRights
		}
	}
	if k.version >= scopesSince {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		if k.errata&signalErratum != 0 {
			attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	return attr
}

// create makes a ruleset. An older kernel takes a longer attr if what it does not know of is zero.
func create(attr unix.LandlockRulesetAttr) (ruleset uintptr, err error) {
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return 0, errno
	}
	return ruleset, nil
}

// rights returns all rights that a version of Landlock can take away.
func rights(version uintptr) uint64 {
	all := uint64(firstRights)
	for since, right := range rightsSince {
		if version >= since {
			all |= right
		}
	}
	return all
}

// allowReading adds to a ruleset that path may be read, with everything below it.
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
		attr.Allowed_access = folderRights
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset,
		unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
