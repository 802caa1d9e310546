// Package identity identifies files, whatever their paths are and wherever their file system is mounted. No two files
// get the same identity as long as their file system lives.
package identity

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// ID identifies a file or folder. It holds the file system's own number and the file's handle for exports (NFS), which
// has its inode and generation. Where there is no handle (overlay file systems), inode and time of birth stand for it.
// The device number is no part of it, as that may change with the next mount. Empty: not known.
type ID string

// At identifies what lies at path, relative to the open folder dir. A link is not followed. It returns "" if that
// fails.
func At(dir int, path string) ID {
	fd, err := unix.Openat(dir, path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	return Of(fd)
}

// Of identifies the file of an open descriptor, for which O_PATH is enough. It returns "" if that fails.
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
