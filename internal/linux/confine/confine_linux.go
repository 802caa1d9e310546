package confine

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Options say what is left to a process. The zero value leaves it its standard
// descriptors and what Go's runtime needs to go on.
type Options struct {
	// Keep are the descriptors that stay open besides 0, 1 and 2.
	Keep []int
	// Calls are the system calls that may be made besides those of [Runtime].
	Calls []Call
	// Read are files and folders that may be read, with all that is below them.
	// Without any the file system is out of reach, and no file can be opened.
	Read []string
	// Files bounds how many descriptors may be open at once; 0: as before.
	Files uint64
}

// Self confines this process, all of its threads, for good. It returns an error
// when a protection could not be set up; the process must not go on then.
//
// The kernel's filter of system calls is a must. Landlock is used where the
// kernel has it, and is a must where files may be read.
func Self(o Options) error {
	if err := closeOthers(o.Keep); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	if err := limit(o.Files); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		return fmt.Errorf("set no_new_privs: %w", errno)
	}
	if err := landlock(o.Read); err != nil {
		return fmt.Errorf("close the file system by Landlock: %w", err)
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

// closeOthers closes every descriptor but the standard ones, those to keep, and
// those by which Go's runtime waits.
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
		// The folder itself was one of them, and is closed by now.
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

// limit keeps the process from leaving its memory behind, by a core file or to
// whoever attaches to it.
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
