// Package alarm tells of what is not protected any more while a session runs, and ends the session.
package alarm

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"claudebox/internal/diag"
	"claudebox/internal/workspace/git"
)

// Most is how many names are told of one kind while a session runs. An agent can make any number of files, and uncover
// each any number of times.
const Most = 20

// Alarm tells what became of the protections of a session. It waits for no terminal: the agent may have stopped its
// output. Several goroutines may use it.
type Alarm struct {
	To     io.Writer // may be a terminal in raw mode
	End    func()    // ends the session
	Strict bool      // a file that was replaced outside ends it, too: `protect_mode: strict`

	mu        sync.Mutex
	uncovered counts // could not be covered again
	again     counts // were
	apart     counts // could not be held back
	unguarded counts
	unrenewed counts
	aside     counts
	held      counts // repositories of the user's
	rewritten counts

	lines sync.WaitGroup // of Say
	turn  sync.Mutex     // of one line after the other
}

// counts say how often something happened to a file.
type counts map[string]int

// count counts one of a's counts. It reports whether to tell: once for a file, for as many files as most says.
func (a *Alarm) count(of *counts, file string, most int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *of == nil {
		*of = counts{}
	}
	(*of)[file]++
	return (*of)[file] == 1 && len(*of) <= most
}

const ends = "; the session ends"

// Uncovered is called with each file that lost its cover; err says why it could not be covered again, and is nil if it
// was: then it is told when the session is over. A session whose file stays uncovered ends.
func (a *Alarm) Uncovered(file string, err error) {
	if a.Strict || err != nil {
		a.End()
	}
	switch {
	case err == nil:
		if a.count(&a.again, file, 1) && a.Strict {
			a.Say(diag.Name(file) + " was replaced outside" + ends)
		}
	case a.count(&a.uncovered, file, Most):
		a.Say(diag.Name(file) + " is not covered any more, and the agent can read or change it: " +
			diag.Visible(err.Error()) + ends)
	}
}

// Unguarded ends a session in which something cannot be held back any more.
func (a *Alarm) Unguarded(err error) {
	a.End()
	if a.count(&a.unguarded, "", 1) {
		a.Say("what your tools would obey unasked cannot be held back any more: " + diag.Visible(err.Error()) + ends)
	}
}

// Apart tells of a file that cannot be held back where it lies.
func (a *Alarm) Apart(rel string) {
	if a.count(&a.apart, rel, Most) {
		a.Say(diag.Name(rel) + " cannot be held back, as it is on a file system of its own: your tools may obey it")
	}
}

// Unrenewed tells of a repository of the user's that an agent may still write to.
func (a *Alarm) Unrenewed(at string, err error) {
	if a.count(&a.unrenewed, at, Most) {
		a.Say(diag.Name(at) + ", which you have made: " + diag.Visible(err.Error()) +
			"; until it has new files, or the session ends, an agent that was faster than claudebox can write there")
	}
}

// PutAside tells of a repository of the user's in which names were put aside.
func (a *Alarm) PutAside(at string, names []string) {
	if a.count(&a.aside, at, Most) {
		a.Say(diag.Name(at) + ", which you have made: what git would run by " + strings.Join(names, " and ") +
			" was put aside, as an agent may have written it; if it is yours: `(cd -- " + diag.Quote(at) +
			" && for f in " + strings.Join(names, " ") + "; do mv -fT -- $f." + git.Aside + " $f; done)`")
	}
}

// HeldBack tells of a repository of the user's that is held back.
func (a *Alarm) HeldBack(at string) {
	if a.count(&a.held, at, Most) {
		a.Say(diag.Name(at) + ", which you have made, is held back until the session ends, as an agent may have " +
			"written there what your git would obey; until then git stops there")
	}
}

// Rewritten tells of a repository of the user's that got new files, whose first ones are kept.
func (a *Alarm) Rewritten(at, kept string) {
	if a.count(&a.rewritten, at, Most) {
		a.Say(diag.Name(at) + ", which you have made, got new files, as the agent may have had the first ones open; " +
			"those were written to meanwhile, and are kept in " + diag.Name(kept) +
			", which is closed until the session ends")
	}
}

// Say prints a line, without waiting for it.
func (a *Alarm) Say(line string) {
	a.lines.Go(func() {
		a.turn.Lock()
		defer a.turn.Unlock()
		fmt.Fprintf(a.To, "\r\nclaudebox: %s\r\n", line)
	})
}

// Rest waits for the lines that are being printed. It returns lines on the times that were not printed, and on all
// files that were covered again.
func (a *Alarm) Rest() (lines []string) {
	a.lines.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	again, more := 0, max(0, len(a.uncovered)-Most)
	for _, n := range a.uncovered {
		again += n - 1
	}
	switch {
	case more > 0:
		lines = append(lines,
			fmt.Sprintf("%d more files were uncovered, all together %d times", more, len(a.uncovered)+again))
	case again > 0:
		lines = append(lines, fmt.Sprintf("the files that are named above were uncovered %d times more", again))
	}
	files := slices.Sorted(maps.Keys(a.again))
	for _, file := range files[:min(len(files), Most)] {
		lines = append(lines, fmt.Sprintf("%s was replaced outside while the agent worked, %s; it was covered "+
			"again at once, but an agent that waited for that has read or changed it",
			diag.Name(file), times(a.again[file])))
	}
	if len(files) > Most {
		lines = append(lines, fmt.Sprintf("%d more files were replaced so", len(files)-Most))
	}
	return lines
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
