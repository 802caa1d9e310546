// Package sockets makes sockets in folders, and removes those that were left behind. A folder's path may be too long
// for the address of a socket (108 bytes, unix(7)), so each is reached through the folder's descriptor.
package sockets

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"claudebox/internal/linux/proctree"

	"golang.org/x/sys/unix"
)

// patience is how long a program that listens may take to answer.
const patience = 5 * time.Second

// Listen makes a socket in an open folder, and listens there. The socket stays when the listener is closed. Since Linux
// 6.16 nobody can send it descriptors: who closes the last one of a TCP socket waits as long as its maker wished.
func Listen(dir *os.File, name string) (*net.UnixListener, error) {
	var without net.ListenConfig
	without.Control = func(_, _ string, socket syscall.RawConn) error {
		return socket.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0)
		})
	}
	listener, err := without.Listen(context.Background(), "unix", At(dir, name))
	if err != nil {
		return nil, err
	}
	l := listener.(*net.UnixListener)
	l.SetUnlinkOnClose(false)
	return l, nil
}

// ListenIn is [Listen] in a folder that it opens, for the folder's owner alone, whatever the umask. The sockets that
// left chooses go first, see [RemoveLeft].
func ListenIn(folder, name string, left func(name string) bool) (*net.UnixListener, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	RemoveLeft(dir, left)
	l, err := Listen(dir, name)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(At(dir, name), 0o600); err != nil {
		l.Close()
		return nil, errors.Join(err, unix.Unlinkat(int(dir.Fd()), name, 0))
	}
	return l, nil
}

// Dial connects to a socket in an open folder.
func Dial(dir *os.File, name string) (net.Conn, error) {
	return net.DialTimeout("unix", At(dir, name), patience)
}

// At is a path of a name in an open folder that is short enough for the address of a socket.
func At(dir *os.File, name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name) }

// RemoveLeft removes the sockets in a folder that which chooses, by their names, and to which no program
// listens: their sessions were killed.
func RemoveLeft(dir *os.File, which func(name string) bool) {
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		var st unix.Stat_t
		err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || !which(name) {
			continue
		}
		c, err := Dial(dir, name)
		switch {
		case err == nil:
			c.Close()
		case errors.Is(err, unix.ECONNREFUSED):
			_ = unix.Unlinkat(int(dir.Fd()), name, 0)
		}
	}
}

// OfEnded chooses the sockets whose names are a prefix and the id of a process that has ended. One of a process that
// runs may be there, and not be listened on for a moment.
func OfEnded(prefix string) func(name string) bool {
	return func(name string) bool {
		text, is := strings.CutPrefix(name, prefix)
		pid, err := strconv.Atoi(text)
		state, _ := proctree.State(pid)
		return is && (err != nil || state == proctree.Gone)
	}
}
