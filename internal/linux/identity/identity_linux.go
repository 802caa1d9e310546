// Package identity names files so that no two are confused, for as long as their file system lives:
// whatever they are called, and whatever is mounted where.
//
// It imports golang.org/x/sys/unix.
package identity

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// ID is a file or folder: the file system's own number, and the handle by which
// it would be exported, which holds inode and generation. Where there is no
// handle (overlay file systems), inode and time of birth stand for it. The number
// of the device is no part of it: that may be another at the next mount. Empty:
// not known.
type ID string

// At identifies what lies at a path from an open folder. A link is not
// followed.
func At(dir int, path string) ID {
	fd, err := unix.Openat(dir, path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	return Of(fd)
}

// Of identifies what an open descriptor is of; O_PATH is enough.
func Of(fd int) ID {
	var system unix.Statfs_t
	if unix.Fstatfs(fd, &system) != nil {
		return ""
	}
	volume := make([]byte, 0, 8)
	for _, half := range system.Fsid.Val {
		volume = binary.BigEndian.AppendUint32(volume, uint32(half))
	}
	if handle, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH); err == nil {
		return ID(fmt.Sprintf("%x-%x-%x", volume, handle.Type(), handle.Bytes()))
	}
	var st unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &st) != nil {
		return ""
	}
	return ID(fmt.Sprintf("%x-i%x-%x.%x", volume, st.Ino, st.Btime.Sec, st.Btime.Nsec))
}
