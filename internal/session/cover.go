package session

import (
	"fmt"
	"os"
	"path"
	"syscall"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/cover"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/project"
)

// watchCovers keeps the files of the project, and of what is given beside it,
// covered while the session runs.
func (s *Session) watchCovers(bwrap int) (watches []*cover.Watch) {
	for _, given := range s.given() {
		if !s.isMoved(given) {
			watches = append(watches, cover.Begin(bwrap, given.Path, covers(given), s.uncovered))
		}
	}
	return watches
}

// covers are the files of a folder that stay covered, whatever replaces them on
// the host.
func covers(given project.Project) []cover.File {
	var files []cover.File
	for _, m := range given.Mounts {
		f := cover.File{Path: m.Path, Folder: m.Dir}
		switch m.Mode {
		case project.Hidden:
			f.Remake = func(string) ([]byte, error) { return []byte{}, nil }
		case project.Made:
			f.Remake = sanitised
		case project.ReadOnly:
		default:
			continue
		}
		files = append(files, f)
	}
	return files
}

// sanitised makes the copy of a git configuration that is seen inside.
func sanitised(file string) ([]byte, error) {
	at, err := beneath.Open(path.Dir(file))
	if err != nil {
		return nil, err
	}
	defer at.Close()
	const limit = 1 << 20
	content, err := at.Read(path.Base(file), limit)
	return append([]byte{}, gitconfig.Sanitise(content)...), err
}

// uncovered says at once what could not be covered again. With `protect_mode:
// strict` the session ends.
func (s *Session) uncovered(file string, err error) {
	strict, end := s.Launch.Plan.Protect.Mode == "strict", ""
	if strict {
		end = "; the session ends"
	}
	// The terminal may be in raw mode: a carriage return begins the line.
	fmt.Fprintf(s.caller.Stderr, "\r\nclaudebox: %s is not covered any more, and the agent can read or change it: %s%s\r\n",
		diag.Visible(file), diag.Visible(err.Error()), end)
	if strict {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // is passed on to the agent
	}
}
