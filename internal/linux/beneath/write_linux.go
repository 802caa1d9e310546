package beneath

import (
	"crypto/rand"
	"errors"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// parent opens the folder that holds rel, and gives rel's last component.
func (f *Folder) parent(rel string) (fd int, name string, err error) {
	fd, err = f.open(path.Dir(rel), unix.O_PATH|unix.O_DIRECTORY)
	return fd, path.Base(rel), err
}

// in does something with a name in its parent folder.
func (f *Folder) in(op, rel string, do func(fd int, name string) error) error {
	fd, name, err := f.parent(rel)
	if err == nil {
		defer unix.Close(fd)
		err = do(fd, name)
	}
	if err != nil {
		return f.fault(op, rel, err)
	}
	return nil
}

// Mkdir makes one folder. One that is there is an error, [os.ErrExist].
func (f *Folder) Mkdir(rel string, perm uint32) error {
	return f.in("make folder", rel, func(fd int, name string) error { return unix.Mkdirat(fd, name, perm) })
}

// Create makes a new file with content. One that is there is an error,
// [os.ErrExist]; when writing fails nothing is left behind.
func (f *Folder) Create(rel string, content []byte, perm uint32) error {
	return f.in("make", rel, func(fd int, name string) error { return create(fd, name, content, perm, false) })
}

// Replace makes a file with content in one step, and waits for the disk: a
// reader sees the old or the new one, and when anything fails (a full disk)
// the old one stays and nothing else is left behind. What lay there is
// replaced by name, never written to, be it a link or have it other names.
func (f *Folder) Replace(rel string, content []byte, perm uint32) error {
	return f.replace(rel, content, perm, true)
}

// Rewrite is [Folder.Replace] without the wait: after a power cut the file
// may be empty. It is for what can be made again.
func (f *Folder) Rewrite(rel string, content []byte, perm uint32) error {
	return f.replace(rel, content, perm, false)
}

func (f *Folder) replace(rel string, content []byte, perm uint32, sync bool) error {
	return f.in("write", rel, func(fd int, name string) error {
		// One name for all: what a killed process left is taken by the next.
		temporary := "." + name + ".new"
		_ = unix.Unlinkat(fd, temporary, 0)
		if createAs(fd, name, temporary, content, perm, sync) == nil {
			return nil
		}
		// There is a folder of that name, or another writer is at work.
		return createAs(fd, name, "."+name+"."+rand.Text(), content, perm, sync)
	})
}

// createAs is [create] by another name, under which nothing stays.
func createAs(parent int, name, temporary string, content []byte, perm uint32, sync bool) error {
	if err := create(parent, temporary, content, perm, sync); err != nil {
		return err
	}
	err := unix.Renameat(parent, temporary, parent, name)
	if err != nil {
		err = errors.Join(err, unix.Unlinkat(parent, temporary, 0))
	}
	return err
}

// create makes a new file in an open folder; sync waits for the disk. The file
// has its name only once it is whole, where the file system can do that
// (O_TMPFILE, open(2)); else it loses it again when writing fails.
func create(parent int, name string, content []byte, perm uint32, sync bool) error {
	const flags = unix.O_WRONLY | unix.O_CLOEXEC
	fd, err := unix.Openat(parent, ".", flags|unix.O_TMPFILE, perm)
	named := err != nil
	if named {
		fd, err = unix.Openat(parent, name, flags|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, perm)
	}
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	_, err = file.Write(content)
	if err == nil && sync {
		err = file.Sync()
	}
	if err == nil && !named {
		err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), parent, name, unix.AT_SYMLINK_FOLLOW)
	}
	if closed := file.Close(); err == nil && named {
		err = closed
	}
	if at := (*os.PathError)(nil); errors.As(err, &at) {
		err = at.Err // its path is not the one that was asked for
	}
	if err != nil && named {
		err = errors.Join(err, unix.Unlinkat(parent, name, 0))
	}
	return err
}

// Symlink makes a link with the given text.
func (f *Folder) Symlink(text, rel string) error {
	return f.in("make link", rel, func(fd int, name string) error { return unix.Symlinkat(text, fd, name) })
}

// Rename moves what lies at from to another name, replacing a file there.
func (f *Folder) Rename(from, to string) error {
	return f.in("rename", from, func(fd int, name string) error {
		target, base, err := f.parent(to)
		if err != nil {
			return err
		}
		defer unix.Close(target)
		return unix.Renameat(fd, name, target, base)
	})
}

// Remove deletes a file, a link or an empty folder.
func (f *Folder) Remove(rel string) error {
	return f.in("remove", rel, func(fd int, name string) error {
		err := unix.Unlinkat(fd, name, 0)
		if errors.Is(err, unix.EISDIR) {
			err = unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// Chmod sets the permission bits of a file or folder. It needs no right but
// being the owner.
func (f *Folder) Chmod(rel string, perm uint32) error {
	fd, err := f.open(rel, unix.O_PATH)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), perm) // fchmod refuses O_PATH
	}
	if err != nil {
		return f.fault("change the mode of", rel, err)
	}
	return nil
}
