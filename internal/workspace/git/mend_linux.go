package git

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/survey"
)

// Change is one thing that the host's git does not find any more.
type Change struct {
	Rel  string // what it was, below the root
	Text string // what was done
	To   string // where it is now, below the root
}

// Mender applies repairs below a root. No program of the session may run any more, or it could undo them at once.
type Mender struct {
	Root    *beneath.Folder
	Changes []Change

	kept map[string]string // folders for what is taken out, by git folder
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
	if r.Do == Disarm {
		for _, sign := range signs {
			at := path.Join(r.Rel, sign)
			if what, err := m.Root.Look(at); err == nil && what.Kind != beneath.Absent && what.Kind != beneath.Dir {
				return m.Apply(Repair{Do: Rename, Rel: at, Why: r.Why})
			}
		}
		return nil
	}
	if r.Do == Drop {
		return m.drop(r.Rel)
	}
	if err := m.disarmAll(r.Rel); err != nil { // no repository in what is moved is one any more
		return err
	}
	name, before := r.Rel+suffix, "-"
	if r.Do != Rename {
		var err error
		if name, err = m.nameAside(r); err != nil {
			return err
		}
		before = "."
	}
	to, err := m.move(r.Rel, name, before)
	if err != nil {
		return err
	}
	said := map[Action]string{
		Rename:    "renamed to " + diag.Name(path.Base(to)) + ": " + r.Why,
		MoveAside: "moved to " + diag.Name(to) + ": " + r.Why,
		Rewrite:   r.Why + " taken out; as it was: " + diag.Name(to),
	}
	m.Changes = append(m.Changes, Change{r.Rel, said[r.Do], to})
	if r.Do == Rewrite {
		err = m.allowed(path.Dir(r.Rel), func() error { return m.Root.Create(r.Rel, r.Content, 0o644) })
	}
	return err
}

// drop removes a file, or a folder of files.
func (m *Mender) drop(rel string) error {
	what, err := m.Root.Look(rel)
	if err == nil && what.Kind == beneath.Dir {
		var names []string
		names, err = m.Root.Names(rel, nameLimit)
		for _, name := range names {
			err = errors.Join(err, m.drop(path.Join(rel, name)))
		}
	}
	if err != nil {
		return err
	}
	return m.allowed(path.Dir(rel), func() error { return m.Root.Remove(rel) })
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

// nameAside returns a path for something that is moved aside, in a new folder of its git folder.
func (m *Mender) nameAside(r Repair) (string, error) {
	kept, err := m.keep(r.Git)
	if err != nil {
		return "", err
	}
	name := r.Rel
	if r.Git != "." {
		name = strings.TrimPrefix(name, r.Git+"/")
	}
	to := path.Join(kept, strings.ReplaceAll(name, "/", "-"))
	if base := path.Base(to); base == "HEAD" || base == ".git" { // or git takes the folder for a repository
		to += suffix
	}
	return to, nil
}

const suffix = ".claudebox-aside"

// move moves something to a name, or to a similar one that is free, also in a folder that the agent has closed.
func (m *Mender) move(from, name, before string) (to string, err error) {
	if to, err = m.free(name, before); err != nil {
		return "", err
	}
	do := func() error { return m.Root.Rename(from, to) }
	if err = m.allowed(path.Dir(from), do); errors.Is(err, fs.ErrPermission) { // a folder that moves is written to
		err = m.allowed(from, do)
	}
	return to, err
}

// allowed calls do, which changes a folder. If the agent has closed the folder, it opens it and calls do again.
func (m *Mender) allowed(dir string, do func() error) error {
	return reader{m.Root, true}.try(dir, 0o755, do)
}

// free returns a name that is not taken: with a number behind it if need be, or with a random text if many are taken.
func (m *Mender) free(name, before string) (string, error) {
	to := name
	for n := range 1000 {
		what, err := m.Root.Look(to)
		if err != nil || what.Kind == beneath.Absent {
			return to, err
		}
		to = fmt.Sprintf("%s%s%d", name, before, n+1)
	}
	return name + before + rand.Text(), nil
}

// disarmAll renames every git place in a folder that is to be moved, those in such places too, and every pipe, because
// git would wait for its other end.
func (m *Mender) disarmAll(rel string) error {
	what, err := m.Root.Look(rel)
	if err != nil || what.Kind != beneath.Dir {
		return nil //nolint:nilerr // what cannot be looked at is moved all the same
	}
	for from, depth := []string{rel}, 0; len(from) > 0; depth++ {
		seen := openWalk(m.Root, from, nil)
		if seen.Cut || depth > 100 {
			return errors.New("there is too much in it")
		}
		away := slices.Clone(seen.Git)
		for _, pipe := range seen.Files {
			away = append(away, pipe.Rel)
		}
		for _, place := range seen.Bare {
			for _, sign := range signs {
				at := path.Join(place, sign)
				if what, err := m.Root.Look(at); err != nil || what.Kind != beneath.Absent && what.Kind != beneath.Dir {
					away = append(away, at)
				}
			}
		}
		from = nil
		slices.Sort(away) // a sign may be a pipe
		for _, at := range slices.Compact(away) {
			to, err := m.move(at, at+suffix, "-")
			if err != nil {
				return err
			}
			from = append(from, to) // no walk enters what is called .git
		}
	}
	return nil
}

// openWalk looks for git places and pipes in folders, and for names that are wanted. It opens what the agent closed.
func openWalk(root *beneath.Folder, from []string, wanted survey.Wanted) (seen *survey.Survey) {
	const limit = 2_000_000
	survey.OpenUntil(root, func() []string {
		seen = survey.Walk(root, survey.Question{From: from, Wanted: wanted, Limit: limit}, nil)
		return seen.Closed
	})
	return seen
}

// keep returns the folder for what is moved aside in a git folder, and makes it first if need be.
func (m *Mender) keep(git string) (at string, err error) {
	if at := m.kept[git]; at != "" {
		return at, nil
	}
	err = m.allowed(git, func() error {
		if at, err = m.free(path.Join(git, Aside), "-"); err != nil {
			return err
		}
		return m.Root.Mkdir(at, 0o700)
	})
	if err != nil {
		return "", err
	}
	if m.kept == nil {
		m.kept = map[string]string{}
	}
	m.kept[git] = at
	return at, nil
}
