package session

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
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

// uncovered is what lost its cover while a session runs, by path, and how often.
type uncovered struct {
	mu    sync.Mutex
	times map[string]int // could not be covered again
	again map[string]int // were covered again
	apart map[string]int // could not be held back

	saying sync.WaitGroup // lines of say
	turn   sync.Mutex     // of one line after the other
}

// note counts, in one of u's maps, that a file was uncovered. It reports whether to print that: once for a file,
// for the first files, as many as most says.
func (u *uncovered) note(count *map[string]int, file string, most int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if *count == nil {
		*count = map[string]int{}
	}
	(*count)[file]++
	return (*count)[file] == 1 && len(*count) <= most
}

// rest returns lines on the times that were not printed, and on all files that were covered again.
func (u *uncovered) rest() (lines []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	again, more := 0, max(0, len(u.times)-mostUncovered)
	for _, n := range u.times {
		again += n - 1
	}
	switch {
	case more > 0:
		lines = append(lines,
			fmt.Sprintf("%d more files were uncovered, all together %d times", more, len(u.times)+again))
	case again > 0:
		lines = append(lines, fmt.Sprintf("the files that are named above were uncovered %d times more", again))
	}
	files := slices.Sorted(maps.Keys(u.again))
	for _, file := range files[:min(len(files), mostUncovered)] {
		lines = append(lines, fmt.Sprintf("%s was replaced outside while the agent worked, %s; it was covered "+
			"again at once, but an agent that waited for that has read or changed it",
			diag.Name(file), times(u.again[file])))
	}
	if len(files) > mostUncovered {
		lines = append(lines, fmt.Sprintf("%d more files were replaced so", len(files)-mostUncovered))
	}
	return lines
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// tellUncovered is called with each file that lost its cover; err says why it could not be covered again, and is nil if
// it was: then it is told when the session is over, which it is at once with `protect_mode: strict`. A session whose
// file stays uncovered ends. It does not wait for the terminal.
func (r *running) tellUncovered(file string, err error) {
	const end = "; the session ends"
	strict := r.Launch.Plan.Protect.Mode == "strict"
	if strict || err != nil {
		r.runner.Signals.End()
	}
	switch {
	case err == nil:
		if r.lost.note(&r.lost.again, file, 1) && strict {
			r.lost.say(r.Caller.Stderr, diag.Name(file)+" was replaced outside"+end)
		}
	case r.lost.note(&r.lost.times, file, mostUncovered):
		r.lost.say(r.Caller.Stderr, diag.Name(file)+
			" is not covered any more, and the agent can read or change it: "+diag.Visible(err.Error())+end)
	}
}

// say prints a line without waiting for that: the agent may have stopped the terminal's output.
func (u *uncovered) say(to io.Writer, line string) {
	u.saying.Go(func() {
		u.turn.Lock()
		defer u.turn.Unlock()
		fmt.Fprintf(to, "\r\nclaudebox: %s\r\n", line) // the terminal may be in raw mode
	})
}
