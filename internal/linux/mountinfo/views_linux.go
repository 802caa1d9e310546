package mountinfo

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/pathname"
)

// View is where a process may see what another one has at a path, or a part of it.
type View struct {
	Part     string // the path of the part; ".": all is seen
	At       string
	ReadOnly bool
}

// Views returns where a process may see what this process has at a path, by the mounts of that process: those in which
// it lies, or a part of it. The kernel says where these lead now, also when a folder was moved. Another mount may lie
// over a view. A process that has ended has none.
func Views(process int, at string) (list []View, err error) {
	var status unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, at, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &status); err != nil {
		return nil, &os.PathError{Op: "statx", Path: at, Err: err}
	}
	own, err := Read()
	if err != nil {
		return nil, err
	}
	seen, err := readOf(strconv.Itoa(process))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, nil
	}
	i := slices.IndexFunc(own, func(m Mount) bool { return m.ID == strconv.FormatUint(status.Mnt_id, 10) })
	if err != nil || i < 0 {
		return nil, errors.Join(err, fmt.Errorf("find the mount of %s", at))
	}
	below, _ := pathname.Cut(at, own[i].Point)
	root := path.Join(own[i].Root, below)
	for _, m := range seen {
		rest, isAll := pathname.Cut(root, m.Root)
		part, isPart := pathname.Cut(m.Root, root)
		switch {
		case m.Device != own[i].Device || !isAll && !isPart:
			continue
		case isAll:
			part = "."
		default:
			rest = ""
		}
		v := View{part, path.Join(m.Point, rest), m.ReadOnly}
		list = slices.DeleteFunc(list, func(under View) bool { return under.At == v.At })
		list = append(list, v)
	}
	return list, nil
}

// Seen returns those views by which a process sees all of what lies at a path, and nothing over it.
func Seen(process int, at string) (list []View, err error) {
	var is unix.Stat_t
	if err := unix.Lstat(at, &is); err != nil {
		return nil, &os.PathError{Op: "lstat", Path: at, Err: err}
	}
	views, err := Views(process, at)
	for _, v := range views {
		if v.Part != "." {
			continue
		}
		if fd := v.Open(process, "", is); fd >= 0 {
			var system unix.Statfs_t
			v.ReadOnly = unix.Fstatfs(fd, &system) == nil && system.Flags&unix.ST_RDONLY != 0
			list = append(list, v)
			unix.Close(fd)
		}
	}
	return list, err
}

// Open opens what a process has by a name at a view, with O_PATH. -1: it is something else.
func (v View) Open(process int, name string, is unix.Stat_t) int {
	at := fmt.Sprintf("/proc/%d/root%s", process, path.Join(v.At, name))
	fd, err := unix.Open(at, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Dev == is.Dev && st.Ino == is.Ino {
		return fd
	}
	unix.Close(fd)
	return -1
}
