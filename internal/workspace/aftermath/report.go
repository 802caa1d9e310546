package aftermath

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/hostrun"
)

// What became of a place.
const (
	New        = "new"
	Changed    = "changed"
	Removed    = "removed"
	Executable = "made executable"
	TakenOut   = "taken out"
	Staged     = "staged"
	HeldBack   = "held back"
	Yours      = "yours"
)

// Change is one place that the host's tools run, or would have run.
type Change struct {
	Path   string `json:"path"` // relative to the project, or absolute
	Change string `json:"change"`
	Means  string `json:"means"`
	// Ordinary is an edit as on any day: of a tracked file that is run when somebody asks for it.
	Ordinary bool `json:"ordinary,omitempty"`
	// Back is the command that puts back what was taken out, in the project.
	Back string `json:"back,omitempty"`

	places int // of which Path names some, as people read them; 0: it is one place
}

// Report is what a session left. Its zero value says nothing.
type Report struct {
	Project string `json:"project"`
	// Unfinished means that the session did not finish its own report: it was killed, or that had failures.
	Unfinished bool      `json:"unfinished,omitempty"`
	Began      time.Time `json:"began,omitzero"` // of an unfinished one
	Changes    []Change  `json:"changes"`
	Cut        bool      `json:"cut,omitempty"`      // not all of the project was looked at
	Beyond     int       `json:"beyond,omitempty"`   // its entries, if the session made more than a launch looks at
	Closed     []string  `json:"closed,omitempty"`   // folders that cannot be read
	Failures   []string  `json:"failures,omitempty"` // what could not be made harmless

	file *os.File // where it is kept until the user was told; nil: it is not
}

// fail notes what could not be done.
func (r *Report) fail(what string, err error) {
	if err != nil {
		r.Failures = append(r.Failures, what+": "+err.Error())
	}
}

// wayBack returns the command that moves something back; empty for names that a terminal does not show as they are.
func wayBack(from, to string) string { return diag.Command("mv -fT --", to, from) }

// unstage returns the command that takes a file out of git's index, in the backquotes of a sentence.
func unstage(rel string) string {
	return "`" + cmp.Or(diag.Command("git --literal-pathspecs rm -f --cached --", rel), "git rm -f --cached") + "`"
}

func (r *Report) finish() {
	slices.SortStableFunc(r.Changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	if r.Changes == nil {
		r.Changes = []Change{}
	}
}

// Silent reports whether there is nothing to say.
func (r Report) Silent() bool {
	return len(r.Changes)+len(r.Failures)+len(r.Closed) == 0 && !r.Cut && r.Beyond == 0
}

// shortened leaves out the middle of a long text: a path may have four thousand characters.
func shortened(text string) string {
	const most = 600
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + " … " + strings.ToValidUTF8(text[len(text)-most/2:], "")
}

// leastRoom is the least number of characters to which text is wrapped: for less, a terminal does it as well.
const leastRoom = 20

// mostTaken is how many things that were taken out are always shown.
const mostTaken = 20

// lineLimit is how many changes a person is shown.
const lineLimit = 40

// Text returns the report for people: one line for each change, wrapped to width characters if width is not 0.
func (r Report) Text(home string, width int) string {
	var b strings.Builder
	say := func(format string, args ...any) {
		b.WriteString("claudebox: " + shortened(diag.Visible(fmt.Sprintf(format, args...))) + "\n")
	}
	project := diag.Name(layout.Path(home, r.Project))
	if r.Unfinished {
		left := ""
		if len(r.Changes) > 0 {
			left = "; what it left:"
		}
		say("a session in %s that began at %s did not finish its report%s", project,
			r.Began.Format(time.DateTime+" MST"), left)
	} else if len(r.Changes) > 0 {
		say("what your own tools run was changed while the session ran:")
	}
	r.lines(&b, width)
	for _, dir := range r.Closed {
		at := path.Join(layout.Path(home, r.Project), dir)
		say("%s cannot be read: nothing is known of what is in it", diag.Name(at))
	}
	if r.Cut {
		say("the project is too large to be looked at as a whole: repositories and files beyond are not told of")
	}
	if r.Beyond > 0 {
		say("the project has %d entries now: the next launch does not look at all of them, and refuses to start with "+
			"--yes; remove what you do not need", r.Beyond)
	}
	for _, f := range r.Failures {
		say("DANGER in %s: %s; do not run git there. "+
			"Each launch tries again, until that is mended or the project removed", project, f)
	}
	return b.String()
}

// forPeople returns the changes in the order in which they are shown: first what was taken out, what leads out of the
// project and what git ignores no more, then what tools run unasked, then what they run when somebody builds, at the
// end one line for all ordinary edits. The first ones, as many as first says, are always shown: also what git runs by
// its configuration, and one change of each kind.
func (r Report) forPeople() (list []Change, first int) {
	var edited []string
	var others, asked, held []Change
	taken := 0
	for _, c := range r.Changes {
		if c.Change == TakenOut {
			taken++
		}
		switch {
		case c.Ordinary:
			edited = append(edited, c.Path)
		case c.Change == TakenOut && taken <= mostTaken, c.Change == Staged,
			strings.Contains(c.Means, leadsOutside), strings.Contains(c.Means, git.Unignored),
			strings.HasPrefix(c.Means, byConfiguration):
			list = append(list, c)
		case c.Change == HeldBack:
			held = append(held, c)
		case hostrun.Ordinary(c.Means):
			asked = append(asked, c)
		default:
			others = append(others, c)
		}
	}
	list = append(list, together(held)...)
	first = len(list)
	others, asked = alike(others), alike(asked)
	if len(r.Changes) > lineLimit {
		first += spread(others)
	}
	list = append(append(list, others...), asked...)
	if len(edited) == 0 {
		return list, first
	}
	const means = "tracked, and run when you build, test or install: see `git diff HEAD`, or `git log -p` if committed"
	all := Change{Path: diag.Some(edited, fewNames), Change: Changed, Means: means, places: len(edited)}
	return append(list, all), first
}

// together puts what is held back into one line, if it is much.
func together(held []Change) []Change {
	const most, named = 5, 3
	if len(held) <= most {
		return held
	}
	var names []string
	for _, c := range held {
		names = append(names, c.Path)
	}
	const means = "repositories that were made inside are not yours yet: the next session here goes on in them; " +
		"`claudebox git` says why"
	return []Change{{Path: diag.Some(names, named), Change: HeldBack, Means: means, places: len(held)}}
}

// someNames is how many places are named where several have one line, and fewNames how many edits.
const someNames, fewNames = 12, 4

// alike puts changes of which nothing but the place differs into one line, where that is shorter by some lines.
func alike(list []Change) (shorter []Change) {
	places := map[Change][]string{}
	kind := func(c Change) Change { c.Path = ""; return c }
	for _, c := range list {
		places[kind(c)] = append(places[kind(c)], c.Path)
	}
	for _, c := range list {
		switch same := places[kind(c)]; {
		case len(same) <= someNames:
			shorter = append(shorter, c)
		case c.Path == same[0]:
			c.Path, c.places = diag.Some(same, someNames), len(same)
			shorter = append(shorter, c)
		}
	}
	return shorter
}

// spread brings the first change of each kind to the front, then the second ones: many of one do not hide another. It
// returns how many kinds there are. What a meaning has after a semicolon is no part of its kind: an agent decides what
// stands there, a number or a path.
func spread(list []Change) (kinds int) {
	turn, times := map[string]int{}, map[string]int{}
	for _, c := range list {
		kind, _, _ := strings.Cut(c.Means, ";")
		turn[c.Path+"\x00"+c.Change] = times[kind]
		times[kind]++
	}
	slices.SortStableFunc(list, func(a, b Change) int {
		return cmp.Compare(turn[a.Path+"\x00"+a.Change], turn[b.Path+"\x00"+b.Change])
	})
	return len(times)
}

func (r Report) lines(w io.Writer, width int) {
	changes, first := r.forPeople()
	shown := changes[:min(len(changes), max(first, lineLimit))]
	wide, kind, unnamed := 0, 0, false
	for i, c := range shown {
		if c.places == 0 {
			shown[i].Path = diag.Name(c.Path)
		}
		unnamed = unnamed || c.places > someNames
		wide, kind = max(wide, layout.Width(shown[i].Path)), max(kind, len(c.Change))
	}
	wide = min(wide, 48)
	for _, c := range shown {
		what := fmt.Sprintf("  %-*s  %-*s  ", kind, c.Change, wide, c.Path)
		means := []string{diag.Visible(c.Means)}
		if c.Back != "" {
			means[0] += "; back: `" + c.Back + "`"
		}
		if room := width - layout.Width(what); room >= leastRoom {
			means = layout.Wrap(means[0], room)
		}
		fmt.Fprintf(w, "%s%s\n", what, strings.Join(means, "\n"+strings.Repeat(" ", layout.Width(what))))
	}
	if more := len(changes) - len(shown); more > 0 {
		fmt.Fprintf(w, "  and %d more; --report-json FILE lists all\n", more)
	} else if unnamed {
		fmt.Fprintln(w, "  --report-json FILE lists all")
	}
}
