package within

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Cover is a mount to lay over a file or folder of a sandbox.
type Cover struct {
	Path     string // of the file or folder to cover; no link is followed
	In       int    // an open folder, as the sandbox has it, below which Path lies; 0: Path is absolute
	With     Kind
	Content  []byte // of a [File]
	Mode     uint32 // of a [File]; bits that the caller's umask forbids are not set
	ReadOnly bool   // it and all that is mounted in it
}

// Kind is what a [Cover] is made of.
type Kind int

const (
	Itself Kind = iota // the covered file or folder itself, with all that is mounted in it
	File               // a new file, which has no name
	Folder             // an empty folder
)

// Seen is the status of the files at a place where a cover was laid.
type Seen struct {
	Under  unix.Stat_t // what it was laid over
	Before unix.Statfs_t
	Made   unix.Stat_t // the [File] that was made
	Path   unix.Stat_t // what its path leads to when all covers are laid
	System unix.Statfs_t
}

// Lay lays covers, in their order, in the mount namespace of a process. It acts as the owner of the user namespace
// that owns this mount namespace; the process itself may be in one below it (bwrap --disable-userns). seen, empty or
// as long as covers, is filled with what was found for each cover. Lay fails with [ErrGone] if there is no such
// process any more, and otherwise usually with an [Error].
func Lay(process int, covers []Cover, seen []Seen) error { return Prepare(process, nil, covers, seen) }

// Setting is a limit on what is counted per user, as /proc/sys/user has them (namespaces(7)).
type Setting struct {
	Name  string // of the file there
	Value string
}

// Prepare is [Lay], and sets limits before: those of the user namespace that owns the mount namespace. They hold for
// all namespaces below it, and who is in one of them cannot change them.
func Prepare(process int, limits []Setting, covers []Cover, seen []Seen) error {
	shared, free, err := share[Seen](len(seen))
	if err != nil {
		return err
	}
	defer free()
	s := &script{}
	if len(limits) > 0 {
		// The folder is this machine's, as the sandbox's own /proc/sys is read-only. Whose limits are in it depends on
		// who looks.
		const folder = "/proc/sys/user"
		users, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: folder, Err: err}
		}
		defer unix.Close(users)
		for _, limit := range limits {
			s.set(users, limit)
		}
	}
	s.layAll(covers, shared)
	_, ended, err := s.start(process, "mnt")
	if err == nil {
		err = ended()
	}
	if err == nil {
		copy(seen, shared)
	}
	return err
}

// layAll adds what [Lay] does to a script. It makes the files that covers need, lays all mounts, and then looks at each
// place by its path once more, because another session may replace a folder until a mount pins it. seen is in shared
// memory.
func (s *script) layAll(covers []Cover, seen []Seen) {
	made := s.makeAll(covers, seen)
	for i, c := range covers {
		s.about = c.Path
		at, mount := s.open(c.In, c.Path), made[i]
		if len(seen) > 0 {
			s.stat(at, &seen[i].Under)
			s.statFS(at, &seen[i].Before)
		}
		if c.With == Itself {
			mount = s.bind(at)
		}
		if c.ReadOnly {
			s.readOnly(mount)
		}
		s.lay(mount, at)
		s.close(at, mount)
	}
	for i := range seen {
		s.about = covers[i].Path
		at := s.open(covers[i].In, s.about)
		s.stat(at, &seen[i].Path)
		s.statFS(at, &seen[i].System)
		s.close(at)
	}
}

// makeAll makes the mounts of those covers that are not the covered file itself.
func (s *script) makeAll(covers []Cover, seen []Seen) []file {
	mounts := make([]file, len(covers))
	if !slices.ContainsFunc(covers, func(c Cover) bool { return c.With != Itself }) {
		return mounts
	}
	s.mountRoom()
	for i, c := range covers {
		s.about = c.Path
		switch c.With {
		case Folder:
			mounts[i] = s.bind(s.room)
		case File:
			f := s.create(c.Content, c.Mode)
			if len(seen) > 0 {
				s.stat(f, &seen[i].Made)
			}
			mounts[i] = s.bind(f)
			s.names[mounts[i]] = s.names[f]
			s.close(f)
		}
	}
	s.unmountRoom()
	return mounts
}
