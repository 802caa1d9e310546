package beneath

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/smallfile"
)

// Folder is an open folder. The paths given to its methods are relative to
// it.
type Folder struct {
	path string
	fd   int
	held []held
}

// held is a folder below another.
type held struct {
	in     string // its path there, and a slash
	folder *Folder
}

// Open opens a canonical absolute path without following any link.
func Open(path string) (*Folder, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &Folder{path: path, fd: fd}, nil
}

// Sub opens a folder below f.
func (f *Folder) Sub(rel string) (*Folder, error) {
	fd, err := f.open(rel, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, f.fault("open", rel, err)
	}
	return &Folder{path: f.Join(rel), fd: fd}, nil
}

// Hold opens a folder below f until f is closed: [Folder.Look] at what lies in
// it takes one system call then, instead of three, whatever its name leads to
// later. One that cannot be opened is not held.
func (f *Folder) Hold(rel string) {
	if folder, err := f.Sub(rel); err == nil {
		f.held = append(f.held, held{rel + "/", folder})
	}
}

// Close closes the folder. Nothing can be done about a failure.
func (f *Folder) Close() {
	for _, h := range f.held {
		h.folder.Close()
	}
	unix.Close(f.fd)
}

// Path is the folder's absolute path, as it was opened.
func (f *Folder) Path() string { return f.path }

// As has the folder go by another path than that by which it was opened: the
// one that it had before it was moved.
func (f *Folder) As(path string) { f.path = path }

// Join gives the absolute path of what lies at rel.
func (f *Folder) Join(rel string) string {
	return strings.TrimSuffix(f.path, "/") + "/" + rel
}

// FD is the folder's descriptor, for calls that this package does not make. It
// is open for paths only (O_PATH) and stays the folder's.
func (f *Folder) FD() int { return f.fd }

// OpenFD opens what lies at rel; the caller closes it.
func (f *Folder) OpenFD(rel string, flags int) (int, error) { return f.open(rel, uint64(flags)) }

// fault is an error about what lies at rel.
func (f *Folder) fault(op, rel string, err error) error {
	return &os.PathError{Op: op, Path: f.Join(rel), Err: err}
}

func (f *Folder) open(rel string, flags uint64) (int, error) {
	return unix.Openat2(f.fd, rel, &unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
}

// Kind is what lies at a path.
type Kind int

const (
	Absent  Kind = iota
	Regular      // a file
	Dir          // a folder
	Link         // a symbolic link, or something behind one
	Special      // a socket, pipe or device
)

// Entry is what lies at a path. All but Kind is zero for what is absent or
// behind a link.
type Entry struct {
	Kind  Kind
	Names uint64 // hard links
	UID   uint32
	Perm  uint32 // permission bits
	Stamp Stamp
}

// Stamp changes with the content of a file: no program can set the
// time of change.
type Stamp struct {
	Ino    uint64
	Size   int64
	Change int64 // nanoseconds since 1970
}

// Look says what lies at rel. A path that leads through a link counts as a
// link: nothing behind it is looked at.
func (f *Folder) Look(rel string) (Entry, error) {
	for _, h := range f.held {
		if name, in := strings.CutPrefix(rel, h.in); in {
			return h.folder.Look(name)
		}
	}
	var st unix.Stat_t
	switch err := f.stat(rel, &st); {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return Entry{}, nil
	case errors.Is(err, unix.ELOOP):
		return Entry{Kind: Link}, nil
	case err != nil:
		return Entry{}, f.fault("look at", rel, err)
	}
	return Entry{
		Kind: KindOf(st.Mode), Names: uint64(st.Nlink), UID: st.Uid, Perm: st.Mode & 0o7777,
		Stamp: Stamp{Ino: st.Ino, Size: st.Size, Change: st.Ctim.Nano()},
	}, nil
}

// stat takes one system call for what lies in the folder itself: no link is on
// the way to it.
func (f *Folder) stat(rel string, st *unix.Stat_t) error {
	if !strings.Contains(rel, "/") && rel != ".." {
		return unix.Fstatat(f.fd, rel, st, unix.AT_SYMLINK_NOFOLLOW)
	}
	fd, err := f.open(rel, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fstat(fd, st)
}

// KindOf is the kind of a file by its mode (stat(2)).
func KindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return Regular
	case unix.S_IFDIR:
		return Dir
	case unix.S_IFLNK:
		return Link
	}
	return Special
}

// ErrTooLarge and ErrNotRegular are what [Folder.Read] refuses, besides what
// the kernel does.
var (
	ErrTooLarge   = smallfile.ErrTooLarge
	ErrNotRegular = smallfile.ErrNotRegular
)

// Read gives a file of at most limit bytes. It neither follows links nor
// waits for the other end of a pipe.
func (f *Folder) Read(rel string, limit int64) ([]byte, error) {
	fd, err := f.open(rel, smallfile.Flags)
	if err != nil {
		return nil, f.fault("open", rel, err)
	}
	defer unix.Close(fd)
	content, err := smallfile.ReadFD(fd, limit)
	if err != nil {
		return nil, f.fault("read", rel, err)
	}
	return content, nil
}

// Names lists a folder, at most limit entries; more is an error, because what
// was not seen cannot be judged.
func (f *Folder) Names(rel string, limit int) ([]string, error) {
	d, err := f.OpenDir(rel)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(limit + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && len(names) > limit {
		err = f.fault("list", rel, ErrTooLarge)
	}
	return names, err
}

// OpenDir opens a folder for reading, so that it can be listed or locked.
func (f *Folder) OpenDir(rel string) (*os.File, error) {
	fd, err := f.open(rel, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, f.fault("open", rel, err)
	}
	return os.NewFile(uintptr(fd), f.Join(rel)), nil
}

// Readlink gives the text of the link at rel.
func (f *Folder) Readlink(rel string) (string, error) {
	fd, err := f.open(rel, unix.O_PATH)
	if err != nil {
		return "", f.fault("read link", rel, err)
	}
	defer unix.Close(fd)
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", text)
	if err != nil {
		return "", f.fault("read link", rel, err)
	}
	return string(text[:n]), nil
}

// ReadIn gives a file of at most limit bytes that lies in a folder, as
// [Folder.Read] does, without opening the folder.
func ReadIn(folder, name string, limit int64) ([]byte, error) {
	where := Folder{path: folder, fd: unix.AT_FDCWD}
	if folder != "." {
		opened, err := Open(folder)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		where = *opened
	}
	return where.Read(name, limit)
}
