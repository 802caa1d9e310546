// Package letgo closes files whose last close takes long, without waiting for it.
package letgo

import (
	"os"

	"golang.org/x/sys/unix"
)

// Close closes a file. It sends the descriptor into a socket that holds itself and the copy, and nothing else: when
// that is closed, the kernel's own threads collect it, and close the copy. So nobody waits until no processor uses a
// watch of inotify any more, some 15 ms, or until all of a file system is on the disk below an overlay that goes away
// (Linux, fs/overlayfs/super.c, ovl_sync_fs). If the descriptor cannot be sent, its close waits.
func Close(f *os.File) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		f.Close()
		return
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(pair[1], int(fd)), nil, unix.MSG_DONTWAIT)
		})
	}
	f.Close()
}
