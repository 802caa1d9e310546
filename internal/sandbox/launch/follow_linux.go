package launch

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/linux/spawn"
	"claudebox/internal/linux/watch"
)

// A live copy is a file that the sandbox sees instead of a file of the host, and whose
// content follows that of the host's file, the original. A launch has at most one: of
// resolv.conf, in tier full.

// follow keeps the live copy among the descriptors up to date until the returned
// watch is closed. It returns nil if there is no live copy. If the kernel cannot watch
// files, the copy keeps the content that it had at the start. Folders are watched, not
// files, because most programs replace a file to change it.
func follow(list []Descriptor) *watch.Watch {
	i := slices.IndexFunc(list, func(d Descriptor) bool { return d.Follows != "" })
	if i < 0 {
		return nil
	}
	return watch.Start(watch.Request{
		Folders: func() []string { return folders(list[i].Follows) },
		Events:  unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO | unix.IN_CREATE,
		See:     func(string) { update(list[i]) }, // whatever changed there
	})
}

// folders returns the folder of file and, if file is a link, the folder of its final target.
func folders(file string) []string {
	dirs := []string{filepath.Dir(file)}
	if real, err := filepath.EvalSymlinks(file); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	return dirs
}

// update copies the original, as it is now, to the live copy d. It does nothing if the
// original is missing, no regular file, larger than 1 MiB, or empty, as it may be while it is being written.
func update(d Descriptor) {
	const longest = 1 << 20
	now, err := smallfile.Read(d.Follows, longest)
	if err != nil || len(now) == 0 {
		return
	}
	d.Data = now
	if fd, err := copyFile(d); err == nil { // after an error the copy keeps its content
		unix.Close(fd)
	}
}

// copyFile opens the file of a live copy, creating it if needed, writes d.Data to it,
// and returns its descriptor. bwrap can mount only a file with a name, so the file lies
// in the instance's folder, beside the agent's home, where no agent can write. The
// sessions of an instance share it, as all want the same content, and none removes it.
func copyFile(d Descriptor) (int, error) {
	const how = unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Open(filepath.Join(d.Folder, d.Name), how, copyMode)
	if err == nil {
		if err = rewrite(fd, d.Data); err == nil {
			return fd, nil
		}
		unix.Close(fd)
	}
	return -1, &diag.Error{Op: "copy " + d.Follows, Err: err}
}

// copyMode is the file mode of a live copy. It is set explicitly, whatever the umask, because the sandbox sees it.
const copyMode = 0o644

// rewrite gives an open file this content, unless it has it already. It writes to the
// file itself and does not replace it, because running sandboxes have mounted it.
func rewrite(fd int, content []byte) error {
	was := make([]byte, len(content)+1) // one byte more, to see whether the file is longer
	if n, err := unix.Pread(fd, was, 0); err != nil || bytes.Equal(was[:n], content) {
		return err
	}
	if err := errors.Join(spawn.Fill(fd, content), unix.Fchmod(fd, copyMode)); err != nil {
		return err
	}
	return unix.Ftruncate(fd, int64(len(content)))
}
