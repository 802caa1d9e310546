// Package modes gives what a sandbox may write to its mode back: an agent can close a file to its user, or open it to
// others.
package modes

import (
	"fmt"
	"io"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// File is a file or folder that is mounted read-write, with its mode as it was before the session.
type File struct {
	path string
	fd   int // O_PATH: it stays this file, whatever becomes of its name
	mode uint32

	in  *beneath.Folder // instead of fd, of what is mounted in a given folder: an agent can have any number of that
	rel string
	ino uint64 // else it was replaced outside
}

// Note records the modes of what the launch mounts read-write.
func Note(l launch.Launch) (list []File) {
	var folders []*beneath.Folder
	for _, m := range l.Mounts {
		if m.Kind != plan.Bind {
			continue
		}
		above := func(f *beneath.Folder) bool { return pathname.Below(path.Dir(m.Source), f.Path()) }
		if i := slices.IndexFunc(folders, above); i >= 0 {
			rel, _ := pathname.Cut(m.Source, folders[i].Path())
			if what, err := folders[i].Look(rel); err == nil {
				list = append(list,
					File{path: m.Source, mode: what.Perm, in: folders[i], rel: rel, ino: what.Stamp.Ino})
			}
			continue
		}
		fd, err := unix.Open(m.Source, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // the launch says what is wrong with it
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			unix.Close(fd)
			continue
		}
		list = append(list, File{path: m.Source, fd: fd, mode: st.Mode & modeBits})
		if in, err := beneath.Open(m.Source); err == nil {
			folders = append(folders, in) // open as long as claudebox
		}
	}
	return list
}

const (
	modeBits    = 0o7777
	ownersBits  = 0o700
	othersWrite = 0o022
)

// Mend restores the modes of what was closed to its user, or opened for others to write; of a folder before those
// of what is mounted in it.
func Mend(list []File, tell io.Writer) {
	for _, was := range list {
		now, err := was.now()
		closed, opened := was.mode&^now&ownersBits, now&^was.mode&othersWrite
		if err == nil && closed|opened != 0 {
			err = was.restore()
		}
		if err != nil {
			diag.Print(tell, &diag.Error{
				Op: "give " + was.path + " back its mode", Err: err,
				Remedy: fmt.Sprintf("chmod %o %s", was.mode, was.path),
			})
		}
		if was.in == nil {
			unix.Close(was.fd)
		}
	}
}

// now returns the mode that the file has now; of one that was replaced outside, that of before.
func (was File) now() (uint32, error) {
	if was.in != nil {
		what, err := was.in.Look(was.rel)
		if err == nil && what.Stamp.Ino != was.ino {
			return was.mode, nil
		}
		return what.Perm, err
	}
	var st unix.Stat_t
	err := unix.Fstat(was.fd, &st)
	return st.Mode & modeBits, err
}

func (was File) restore() error {
	if was.in != nil {
		return was.in.Chmod(was.rel, was.mode)
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", was.fd), was.mode) // fchmod refuses O_PATH
}
