package beneath

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/smallfile"
)

// Folder is an open folder. The paths that its methods take (rel) are relative to
// the folder.
type Folder struct {
	path     string
	fd       int
	inMemory bool // its files lie in memory (tmpfs), see [Stamp]
}

// Open opens the folder at a canonical absolute path without following any link. The caller closes it.
func Open(path string) (*Folder, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var fs unix.Statfs_t
	inMemory := unix.Fstatfs(fd, &fs) == nil && (fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.RAMFS_MAGIC)
	return &Folder{path, fd, inMemory}, nil
}

// Sub opens a folder below f. The caller closes it.
func (f *Folder) Sub(rel string) (*Folder, error) {
	fd, err := f.open(rel, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, f.fault("open", rel, err)
	}
	return &Folder{f.Join(rel), fd, f.inMemory}, nil
}

// Close closes the folder. Nothing can be done about a failure.
func (f *Folder) Close() { unix.Close(f.fd) }

// Path returns the folder's absolute path, as it was opened, or as set by [Folder.As].
func (f *Folder) Path() string { return f.path }

// As sets the path that Path, Join and errors give, for a folder that was moved but is still called by its former
// path.
func (f *Folder) As(path string) { f.path = path }

// Join returns the absolute path of what lies at rel.
func (f *Folder) Join(rel string) string {
	return strings.TrimSuffix(f.path, "/") + "/" + rel
}

// FD returns the folder's descriptor, for calls that this package does not make. It is open for paths only (O_PATH);
// the caller must not close it.
func (f *Folder) FD() int { return f.fd }

// OpenFD opens what lies at rel, with flags of open(2); the caller closes it.
func (f *Folder) OpenFD(rel string, flags int) (int, error) { return f.open(rel, uint64(flags)) }

// fault returns an [os.PathError] about what lies at rel.
func (f *Folder) fault(op, rel string, err error) error {
	return &os.PathError{Op: op, Path: f.Join(rel), Err: err}
}

// open opens what lies at rel. It refuses a path that leaves the folder or goes through a link. A path may be longer
// than the kernel takes at once (PATH_MAX): a program that changes its working folder step by step makes such ones.
func (f *Folder) open(rel string, flags uint64) (int, error) {
	at := f.fd
	for len(rel) >= unix.PathMax {
		cut := max(strings.LastIndexByte(rel[:unix.PathMax], '/'), 0)
		next, err := openAt(at, rel[:cut], unix.O_PATH|unix.O_DIRECTORY)
		if at != f.fd {
			unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at, rel = next, rel[cut+1:]
	}
	fd, err := openAt(at, rel, flags)
	if at != f.fd {
		unix.Close(at)
	}
	return fd, err
}

// openAt is [Folder.open] for a path that is not too long.
func openAt(folder int, rel string, flags uint64) (int, error) {
	return unix.Openat2(folder, rel, &unix.OpenHow{
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
	Link         // a symbolic link, or a path that leads through one
	Special      // a socket, pipe or device
)

// Entry describes what lies at a path. All fields but Kind are zero for what is absent or behind a link.
type Entry struct {
	Kind  Kind
	Names uint64 // hard links
	UID   uint32
	Perm  uint32 // permission bits
	Stamp Stamp
}

// Stamp changes with the content of a file, because no program can set the time of change (ctime). Where files lie in
// memory (tmpfs), a program that has mapped a file can write to it without changing that time, so there the stamp also
// has a hash of the content.
type Stamp struct {
	Ino    uint64
	Size   int64
	Change int64  // nanoseconds since 1970
	Sum    uint64 // hash of the content, where files lie in memory; 0: it was not read
}

// Exists reports whether there is something at a path, be it a link that leads nowhere.
func Exists(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil
}

// IsSettled reports whether another change of a file would show in its time of change, at a time later. Both are in
// nanoseconds since 1970. Kernels before 6.13, and some file systems, count in ticks of up to ten milliseconds; a few
// old ones in whole seconds, or in every other one.
func IsSettled(change, at int64) bool {
	tick := 20 * time.Millisecond
	if change%time.Second.Nanoseconds() == 0 {
		tick = 2 * time.Second
	}
	return at-change > tick.Nanoseconds()
}

// sumLimit is how large a file in memory may be, in bytes, for its content to be hashed.
const sumLimit = 16 << 20

// StampOf returns the stamp of what lies at rel, whose status is st.
func (f *Folder) StampOf(rel string, st *unix.Stat_t) Stamp {
	stamp := Stamp{Ino: st.Ino, Size: st.Size, Change: st.Ctim.Nano()}
	if f.inMemory && KindOf(st.Mode) == Regular && st.Size <= sumLimit {
		if content, err := f.Read(rel, sumLimit); err == nil {
			sum := sha256.Sum256(content)
			stamp.Sum = binary.BigEndian.Uint64(sum[:8])
		}
	}
	return stamp
}

// Look returns what lies at rel; if nothing does, that is no error. A path that leads through a link counts as a link:
// nothing behind it is looked at.
func (f *Folder) Look(rel string) (Entry, error) {
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
		Stamp: f.StampOf(rel, &st),
	}, nil
}

// stat returns the status of what lies at rel. For a name in the folder itself it takes one system call, as no link
// can be on the way to it.
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

// KindOf returns the kind of a file by its mode (stat(2)).
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

// ErrTooLarge and ErrNotRegular are errors of [Folder.Read], besides the kernel's own.
var (
	ErrTooLarge   = smallfile.ErrTooLarge
	ErrNotRegular = smallfile.ErrNotRegular
)

// Read returns the content of a file of at most limit bytes; a larger one is an error. It neither follows links nor
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

// Names lists the names in a folder. It is an error if there are more than limit, because what is not listed cannot be
// judged.
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

// Readlink returns the text of the link at rel.
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

// ReadIn opens a folder as [Open] does, and reads a file in it as [Folder.Read] does.
func ReadIn(folder, name string, limit int64) ([]byte, error) {
	at, err := Open(folder)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	return at.Read(name, limit)
}
