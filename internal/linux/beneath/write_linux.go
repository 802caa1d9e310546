package beneath

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// parent opens the folder that holds rel, and returns its descriptor and the last component of rel.
func (f *Folder) parent(rel string) (fd int, name string, err error) {
	fd, err = f.open(path.Dir(rel), unix.O_PATH|unix.O_DIRECTORY)
	return fd, path.Base(rel), err
}

// in calls do with the parent folder of rel and the name in it. It returns errors as [os.PathError]s for op.
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

// Mkdir makes one folder. If something is there already it fails with [os.ErrExist].
func (f *Folder) Mkdir(rel string, perm uint32) error {
	return f.in("make folder", rel, func(fd int, name string) error { return unix.Mkdirat(fd, name, perm) })
}

// Create makes a new file with content. If something is there already it fails with [os.ErrExist]. When writing fails
// nothing is left behind.
func (f *Folder) Create(rel string, content []byte, perm uint32) error {
	return f.in("make", rel, func(fd int, name string) error { return create(fd, name, content, perm, false) })
}

// Replace makes a file with content in one step, and waits until it is on disk: a reader sees the old or the new
// file. If anything fails (the disk is full) the old file stays and nothing else is left behind. The name gets a new
// file: a link that was there is replaced, not followed, and other hard links of the old file keep its content.
func (f *Folder) Replace(rel string, content []byte, perm uint32) error {
	return f.replace(rel, content, perm, true)
}

// Rewrite is [Folder.Replace] without waiting for the disk: after a power cut the file may be empty. It is for files
// that can be made again, such as caches.
func (f *Folder) Rewrite(rel string, content []byte, perm uint32) error {
	return f.replace(rel, content, perm, false)
}

// replace is [Folder.Replace]; it waits for the disk if sync is set.
func (f *Folder) replace(rel string, content []byte, perm uint32, sync bool) error {
	return f.in("write", rel, func(fd int, name string) error {
		// Always the same name, so that the next call removes what a killed process left.
		temporary := "." + name + ".new"
		_ = unix.Unlinkat(fd, temporary, 0)
		if createAs(fd, name, temporary, content, perm, sync) == nil {
			return nil
		}
		// There is a folder of that name, or another writer is at work.
		return createAs(fd, name, "."+name+"."+rand.Text(), content, perm, sync)
	})
}

// createAs makes a file as [create] does, under a temporary name, and renames it. On failure nothing stays under that
// name.
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

// create makes a new file in an open folder; with sync it waits until the file is on disk. Where the file system
// supports O_TMPFILE (open(2)), the file gets its name only when it is complete. Elsewhere the name is removed again
// if writing fails.
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

// Chmod sets the permission bits of a file or folder. The caller must own it, but need not be able to read it.
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

// RemoveAll deletes what lies at rel, with all in it, also in folders that somebody has closed (chmod 0). No link leads
// it out of the folder, even if a process of a killed session still writes there.
func (f *Folder) RemoveAll(rel string) error {
	root, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(f.fd))
	if err != nil {
		return err
	}
	defer root.Close()
	if root.RemoveAll(rel) == nil {
		return nil
	}
	_ = fs.WalkDir(root.FS(), rel, func(at string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = root.Chmod(at, 0o700)
		}
		return nil
	})
	return root.RemoveAll(rel)
}

// RemoveAll is [Folder.RemoveAll] for the path of a file or folder.
func RemoveAll(at string) error {
	if os.RemoveAll(at) == nil {
		return nil
	}
	parent, err := Open(path.Dir(at))
	if err != nil {
		return err
	}
	defer parent.Close()
	return parent.RemoveAll(path.Base(at))
}
