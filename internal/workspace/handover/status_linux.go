package handover

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Status says how the two sides of a place stand.
type Status struct {
	Outer  string   `json:"gitFolder"` // the user's
	Trees  []string `json:"checkouts"` // that are given
	Never  bool     `json:"unused"`    // no session has worked there: there is nothing of the agent's
	Waits  []Wait   `json:"waits"`
	Broken []string `json:"setAside,omitempty"` // git folders of the agent's
}

// Wait is something that did not cross as it stands.
type Wait struct {
	About  string `json:"about"` // a branch by its short name, another reference, a path
	Text   string `json:"text"`
	Branch string `json:"branch,omitempty"` // which has the agent's commits, where both sides moved one
}

// Settle hands over in each place what waits, if it can be, and says how its sides stand then. An error of one place
// is among what waits there, too. Sessions may live.
func Settle(r Request) (list []Status, err error) {
	for _, p := range r.Places {
		s, failed := settlePlace(r, p, nil)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.Outer, failed))
			s.Waits = append(s.Waits, Wait{
				About: "all of it", Text: "git cannot read one of both sides: " + failed.Error() +
					"; where it is the agent's, the next session sets it aside and makes a new one",
			})
		}
		list = append(list, s)
	}
	return list, err
}

// ErrNoChoice is the error of [Choose] for a branch that did not move on both sides.
var ErrNoChoice = errors.New("no session has moved a branch of this name away from yours")

// Choose settles what is to become of a branch that moved on both sides. It returns what still waits in its place.
func Choose(r Request, branch string, choice Choice) (after Status, err error) {
	before, err := Settle(r)
	for i, s := range before {
		if slices.ContainsFunc(s.Waits, func(w Wait) bool { return w.Branch != "" && w.About == branch }) {
			return settlePlace(r, r.Places[i], map[string]Choice{"refs/heads/" + branch: choice})
		}
	}
	return after, cmp.Or(err, ErrNoChoice)
}

func settlePlace(r Request, p Place, chosen map[string]Choice) (s Status, err error) {
	s.Outer = p.Outer
	for _, t := range p.Trees {
		s.Trees = append(s.Trees, t.Path)
	}
	s.Broken, _ = filepath.Glob(quoteGlob(p.Folder) + "/before-*")
	m, err := p.recall()
	if errors.Is(err, fs.ErrNotExist) {
		s.Never = true
		return s, nil
	}
	isNew := func(t Tree) bool { _, had := m.Common.Trees[t.Rel]; return err == nil && !had }
	for _, t := range p.Trees {
		if isNew(t) {
			s.Waits = append(s.Waits, Wait{About: t.Path, Text: "the agent has this checkout from the next session on"})
		}
	}
	p.Trees = slices.DeleteFunc(slices.Clone(p.Trees), isNew)
	l := r.live(p)
	if err := os.MkdirAll(l.outer().workTree(), 0o700); err != nil {
		return s, err
	}
	f := l.facts()
	f.chosen = chosen
	if err := l.ask(f); err != nil {
		return s, err
	}
	for _, r := range append(l.events, l.remarks...) {
		w := Wait{About: strings.TrimPrefix(strings.TrimPrefix(r.About, "refs/"), "heads/"), Text: r.Text}
		if r.HasCrossed() {
			_, w.Branch, _ = strings.Cut(r.Text, forkedTo)
		}
		s.Waits = append(s.Waits, w)
	}
	return s, nil
}

// ask hands over, also where nothing has changed since the last time: what waits is to be said.
func (l *live) ask(f facts) error {
	unlock, err := l.place.lock()
	if err != nil {
		return err
	}
	defer unlock()
	m, err := l.place.recall()
	if err != nil {
		return err
	}
	m.Inner, m.Outer = "", ""
	if err := l.place.remember(m); err != nil {
		return err
	}
	return l.settle(f)
}

// HasWaiting reports whether something did not cross in a place of an instance, by the instance's folder.
func HasWaiting(instance string) bool {
	files, _ := filepath.Glob(filepath.Join(quoteGlob(instance), Folder, "*", "common.json"))
	return slices.ContainsFunc(files, func(file string) bool {
		m, err := Place{Folder: filepath.Dir(file)}.recall()
		return err != nil || m.Waiting
	})
}

// quoteGlob returns a path as a pattern of [filepath.Match] that matches just it.
func quoteGlob(at string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(at)
}
