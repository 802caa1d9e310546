package git

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/survey"
)

// Change is one thing that the host's git does not find any more.
type Change struct {
	Rel  string   // what it was, below the root
	Text string   // what was done
	To   string   // where it is now, below the root
	Also []Change // what was done in the same step, to what belongs to it
}

// Mender applies repairs below a root. No program of the session may run any more, or it could undo them at once.
type Mender struct {
	Root    *beneath.Folder
	Changes []Change
}

// Apply does one repair. What lies behind a link goes with the link.
func (m *Mender) Apply(r Repair) error {
	if r.Do == Rename {
		r.Rel = TopLink(m.Root, r.Rel)
	}
	switch what, err := m.Root.Look(r.Rel); {
	case err != nil && !errors.Is(err, fs.ErrPermission):
		return err
	case err == nil && what.Kind == beneath.Absent:
		return nil // it went with the folder that it was in
	}
	if r.Do == Rename {
		return m.rename(r.Rel, r.Why)
	}
	first := len(m.Changes)
	if r.Do == Unmake {
		if err := m.disarmAll(r.Rel, r.Why); err != nil {
			return err
		}
		m.Changes = m.Changes[:first] // one line for it all
		return m.rename(r.Rel, r.Why)
	}
	if err := m.disarm(r.Rel, r.Why); err != nil {
		return err
	}
	inner := slices.Clone(m.Changes[first:])
	if err := m.disarmAll(r.Rel, r.Why); err != nil {
		return err
	}
	if len(inner) > 0 { // one line for a repository with all that is in it
		m.Changes = append(m.Changes[:first], inner[0])
	}
	if path.Base(r.Rel) == ".git" {
		return m.strip(r.Rel, r.Why, first)
	}
	return nil
}

// keptByInit are the names in a .git which `git init` leaves as they are, and by which git runs programs.
var keptByInit = []string{"config", "config.worktree", "hooks"}

// strip renames in a folder what `git init` there would take. It adds that to the change at first, which the folder's
// HEAD has.
func (m *Mender) strip(rel, why string, first int) error {
	for _, name := range keptByInit {
		at := path.Join(rel, name)
		what, err := reader{m.Root, true}.look(at)
		if err != nil {
			return err
		}
		if what.Kind != beneath.Absent {
			if err := m.rename(at, why); err != nil {
				return err
			}
		}
	}
	if len(m.Changes) > first+1 {
		m.Changes[first].Also = slices.Clone(m.Changes[first+1:])
		m.Changes = m.Changes[:first+1]
	}
	return nil
}

// disarm renames the file in a folder by which git takes that for a repository.
func (m *Mender) disarm(rel, why string) error {
	for _, sign := range signs {
		at := path.Join(rel, sign)
		what, err := reader{m.Root, true}.look(at)
		if err != nil {
			return err
		}
		if what.Kind != beneath.Absent && what.Kind != beneath.Dir {
			if err := m.rename(at, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// rename gives something another name beside its own.
func (m *Mender) rename(rel, why string) error {
	to, err := m.free(rel + suffix)
	if err != nil {
		return err
	}
	do := func() error { return m.Root.Rename(rel, to) }
	if err = m.allowed(path.Dir(rel), do); errors.Is(err, fs.ErrPermission) { // a folder that moves is written to
		err = m.allowed(rel, do)
	}
	if err == nil {
		text := "renamed to " + diag.Name(path.Base(to)) + ": " + why
		m.Changes = append(m.Changes, Change{Rel: rel, Text: text, To: to})
	}
	return err
}

// TopLink returns the first link on the way to a path below a root, or else the path.
func TopLink(root *beneath.Folder, rel string) string {
	for n, c := range rel {
		if c != '/' {
			continue
		}
		if what, err := root.Look(rel[:n]); err == nil && what.Kind == beneath.Link {
			return rel[:n]
		}
	}
	return rel
}

// signs are files: a folder with one of them is a repository for git.
var signs = []string{"HEAD", "commondir"}

const suffix = "." + Aside

// allowed calls do, which changes a folder. If the agent has closed the folder, it opens it and calls do again.
func (m *Mender) allowed(dir string, do func() error) error {
	return reader{m.Root, true}.try(dir, 0o755, do)
}

// free returns a name that is not taken: with a number behind it if need be, or with a random text if many are taken.
func (m *Mender) free(name string) (string, error) {
	to := name
	for n := range 1000 {
		what, err := m.Root.Look(to)
		if err != nil && !errors.Is(err, fs.ErrPermission) || err == nil && what.Kind == beneath.Absent {
			return to, err
		}
		to = fmt.Sprintf("%s-%d", name, n+1)
	}
	return name + "-" + rand.Text(), nil
}

// disarmAll disarms every repository in a folder, renames what leads to one, and every pipe, because git would wait for
// its other end.
func (m *Mender) disarmAll(rel, why string) error {
	what, err := m.Root.Look(rel)
	if err != nil || what.Kind != beneath.Dir {
		return err
	}
	for from, depth := []string{rel}, 0; len(from) > 0; depth++ {
		seen := openWalk(m.Root, from)
		if seen.Cut || depth > 100 {
			return errors.New("there is too much in it")
		}
		from = nil
		for _, place := range append(slices.Clone(seen.Git), seen.Bare...) {
			what, err := m.Root.Look(place)
			switch {
			case err != nil:
				return err
			case what.Kind == beneath.Absent:
			case what.Kind != beneath.Dir:
				err = m.rename(place, why)
			default:
				err = m.disarm(place, why)
				if path.Base(place) == ".git" { // no walk enters what is called so
					from = append(from, place)
				}
			}
			if err != nil {
				return err
			}
		}
		for _, pipe := range seen.Files {
			if what, err := m.Root.Look(pipe.Rel); err == nil && what.Kind != beneath.Absent {
				if err := m.rename(pipe.Rel, why); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// openWalk looks for git places and pipes in folders. It opens what the agent closed.
func openWalk(root *beneath.Folder, from []string) (seen *survey.Survey) {
	const limit = 2_000_000
	survey.OpenUntil(root, func() []string {
		seen = survey.Walk(root, survey.Question{From: from, Limit: limit}, nil)
		return seen.Closed
	})
	return seen
}
