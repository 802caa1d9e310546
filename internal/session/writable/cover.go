package writable

import (
	"bytes"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/guarded"
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
func covers(given guarded.Folder) (files []cover.File) {
	for _, m := range given.Mounts {
		if remake, stays := remakes[m.Mode]; stays {
			f := cover.File{Path: m.Path, Inside: given.In(m.Path), Folder: m.Dir, Remake: remake}
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

// lentCovers are the files that mounts hide in folders of the host which the agent reads, whatever replaces them there.
// Those that are known by their path inside are left out. empty is what is mounted over a hidden folder.
func lentCovers(mounts []launch.Mount, empty string, known map[string]bool) (files []cover.File) {
	binds := map[string]launch.Mount{}
	for _, m := range mounts {
		if m.Kind == plan.Bind || m.Kind == plan.ROBind {
			binds[m.Destination] = m
		}
	}
	for _, m := range mounts {
		hides := m.Kind == plan.ROData || m.Kind == plan.ROBind && m.Source == empty
		if !hides || known[m.Destination] {
			continue
		}
		around, found := mountAround(binds, m.Destination)
		if !found || around.Upper != "" || around.Layer != "" {
			continue // of an overlay the agent sees what was there when the session began
		}
		at := around.Source + strings.TrimPrefix(m.Destination, around.Destination)
		if m.Source != empty && m.Source != at {
			continue // it is no cover
		}
		f := cover.File{
			Path: at, Inside: m.Destination, Top: around.Source, Folder: m.Source == empty,
			Lent: around.Kind == plan.ROBind, Remake: remakes[project.Hidden],
		}
		if len(m.Data) > 0 && strings.HasPrefix(strings.ToLower(path.Base(at)), "config") {
			f.Remake = remakes[project.Made] // else it is a log of git's
		}
		files = append(files, f)
	}
	return files
}

// mountAround returns the mount of a folder of the host that a path inside lies in. binds are these by where they lie.
func mountAround(binds map[string]launch.Mount, at string) (around launch.Mount, found bool) {
	for dir := at; dir != "/" && !found; {
		dir = path.Dir(dir)
		around, found = binds[dir]
	}
	return around, found
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
