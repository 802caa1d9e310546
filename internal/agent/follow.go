package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
)

// found is a file at the end of all links.
type found struct {
	name  string   // free of links
	names []string // each link followed for a path's last component (folders above it resolved), then name itself
	info  fs.FileInfo
	fault error // why the way to it, or the file, cannot be trusted; nil: it can
}

// follow resolves name through all links. file.fault says why a folder, link or file on the way cannot be trusted.
func (r Request) follow(name string) (file found, err error) {
	met := func(name string, info fs.FileInfo, last bool) error {
		file.fault = cmp.Or(file.fault, r.fault(name, info))
		switch {
		case info.Mode()&fs.ModeSymlink == 0:
			file.info = info
		case last:
			file.names = append(file.names, name)
		}
		return nil
	}
	root, err := r.Files.Lstat("/")
	if err == nil {
		_ = met("/", root, false)
		file.name, err = beneath.Follow(r.Files, "/", name, met)
	}
	if err != nil {
		return found{}, err
	}
	file.names = append(file.names, file.name)
	return file, nil
}

// staffGroup is Debian's group for those who may change /usr/local, which makes them as good as root for what is found
// there. Other systems use the number for another group; none is known that lets it write folders of programs.
const staffGroup = 50

// fault returns an error that says who besides root and the user could change name, a file or folder on the way to a
// program; nil: nobody. What the store holds, members of root's and Debian's staff group, and sticky folders are
// trusted.
func (r Request) fault(name string, info fs.FileInfo) error {
	if pathname.Below(name, store) {
		return nil
	}
	if r.inProject(name) {
		return fmt.Errorf("%s lies in the project, where any agent could have written it", name)
	}
	owner := info.Sys().(*syscall.Stat_t)
	switch uid, gid, mode := int(owner.Uid), int(owner.Gid), info.Mode(); {
	case uid != 0 && uid != r.UID:
		return fmt.Errorf("%s belongs to user %d, who could change it", name, uid)
	case mode&fs.ModeSymlink != 0, mode.IsDir() && mode&fs.ModeSticky != 0:
		return nil // a link has no mode of its own; in a sticky folder only owners replace files
	case mode&0o002 != 0:
		return fmt.Errorf("everyone may write %s", name)
	case mode&0o020 != 0 && gid != 0 && gid != staffGroup && (gid != r.GID || gid != r.UID):
		// by custom the user's private group has the user's number
		return fmt.Errorf("group %d may write %s", gid, name)
	}
	return nil
}

// trusted resolves all links of name. It fails with [ErrNotFound], or a refusal if others could have written the
// file.
func (r Request) trusted(name string) (found, error) {
	file, err := r.follow(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found{}, &diag.Error{Op: "find " + name, Err: ErrNotFound, Remedy: r.howToGet(path.Base(name))}
	case err != nil:
		return found{}, &diag.Error{Op: "find " + name, Err: err}
	case file.fault != nil:
		return found{}, &diag.Error{
			Op: "trust " + name, Err: file.fault,
			Remedy: "install it where only you or root may write, outside the project, or name another in agent: " +
				"{command: [...]}",
		}
	}
	return file, nil
}

// mayExecute reports whether the mode bits let the user execute the file. It knows only their primary group.
func (r Request) mayExecute(file found) bool {
	owner := file.info.Sys().(*syscall.Stat_t)
	bits := file.info.Mode().Perm()
	switch {
	case int(owner.Uid) == r.UID:
		return bits&0o100 != 0
	case int(owner.Gid) == r.GID:
		return bits&0o010 != 0
	}
	return bits&0o001 != 0
}

// Files is the part of a host's file system that the lookup needs. Names are absolute.
type Files interface {
	beneath.LinkReader // Sys of each FileInfo is a *syscall.Stat_t
	Open(name string) (File, error)
}

// File is an open file, read at offsets.
type File interface {
	io.ReaderAt
	io.Closer
}

// hostFiles is the host's file system.
type hostFiles struct{ beneath.OnDisk }

func (hostFiles) Open(name string) (File, error) { return os.OpenFile(name, smallfile.Flags, 0) }
