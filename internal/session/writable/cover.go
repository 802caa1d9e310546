package writable

import (
	"bytes"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/workspace/cover"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/project"
)

// remakes maps the mode of a mount to what makes the content that covers a new file at the mount's path; nil: the new
// file itself is mounted, read-only.
var remakes = map[project.Mode]func(file string) ([]byte, error){
	project.Hidden:   func(string) ([]byte, error) { return []byte{}, nil },
	project.Made:     sanitised,
	project.ReadOnly: nil,
}

// covers are the files of a folder that stay covered, whatever replaces them on the host.
func covers(given project.Project) (files []cover.File) {
	for _, m := range given.Mounts {
		if remake, stays := remakes[m.Mode]; stays {
			f := cover.File{Path: m.Path, Folder: m.Dir, Remake: remake}
			if m.Mode == project.ReadOnly && !m.Dir && path.Base(m.Path) == ".git" {
				const limit = 4096
				if was, err := smallfile.Read(m.Path, limit); err == nil {
					f.Kept = func(at string) bool { return isKept(at, was) }
				}
			}
			files = append(files, f)
		}
	}
	return files
}

// isKept reports whether a .git file says what it said, as after `git submodule update`, and no process can write it:
// none has it open for that (F_SETLEASE of fcntl(2)), and it has no other name.
func isKept(at string, was []byte) bool {
	f, err := os.OpenFile(at, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return false
	}
	var st unix.Stat_t
	now := make([]byte, len(was)+1)
	n, err := unix.Pread(int(f.Fd()), now, 0)
	return err == nil && unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink == 1 && bytes.Equal(now[:n], was)
}

// sanitised makes the copy of a git configuration that is seen inside.
func sanitised(file string) ([]byte, error) {
	const limit = 1 << 20
	content, err := beneath.ReadIn(path.Dir(file), path.Base(file), limit)
	return append([]byte{}, gitconfig.Sanitise(content)...), err
}
