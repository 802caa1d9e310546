package session

import (
	"fmt"
	"path"
	"sync"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
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
			files = append(files, cover.File{Path: m.Path, Folder: m.Dir, Remake: remake})
		}
	}
	return files
}

// sanitised makes the copy of a git configuration that is seen inside.
func sanitised(file string) ([]byte, error) {
	const limit = 1 << 20
	content, err := beneath.ReadIn(path.Dir(file), path.Base(file), limit)
	return append([]byte{}, gitconfig.Sanitise(content)...), err
}

// mostUncovered is how many files are named while a session runs. An agent can
// make any number of them, and any number of times.
const mostUncovered = 20

// uncovered is what could not be covered again, by path, and how often.
type uncovered struct {
	mu    sync.Mutex
	times map[string]int
}

// note counts that a file was uncovered. It reports whether to print that: once for a file, for mostUncovered files.
func (u *uncovered) note(file string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.times == nil {
		u.times = map[string]int{}
	}
	u.times[file]++
	return u.times[file] == 1 && len(u.times) <= mostUncovered
}

// rest is one line on what note did not have printed; empty: there is nothing.
func (u *uncovered) rest() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	again, more := 0, max(0, len(u.times)-mostUncovered)
	for _, n := range u.times {
		again += n - 1
	}
	switch {
	case again == 0 && more == 0:
		return ""
	case more == 0:
		return fmt.Sprintf("the files that are named above were uncovered %d times more", again)
	}
	return fmt.Sprintf("%d more files were uncovered, all together %d times", more, len(u.times)+again)
}

// tellUncovered prints at once that a file could not be covered again. With `protect_mode: strict` the session ends.
func (r *running) tellUncovered(file string, err error) {
	strict, end := r.Launch.Plan.Protect.Mode == "strict", ""
	if strict {
		end = "; the session ends"
	}
	if r.lost.note(file) {
		// The terminal may be in raw mode: a carriage return begins the line.
		fmt.Fprintf(r.caller.Stderr,
			"\r\nclaudebox: %s is not covered any more, and the agent can read or change it: %s%s\r\n",
			diag.Visible(file), diag.Visible(err.Error()), end)
	}
	if strict {
		r.runner.Signals.End()
	}
}
