package git

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/survey"
)

// Change is one thing that was taken out of the host's git's reach.
type Change struct {
	Rel  string // what it was, below the root
	Text string // what was done
	To   string // where it is now, below the root
}

// Mender applies repairs below a root. Nothing may run inside any more, or what
// it did can be undone at once.
type Mender struct {
	Root    *beneath.Folder
	Changes []Change

	kept map[string]string // folders for what is taken out, by git folder
}

// Apply does one repair.
func (m *Mender) Apply(r Repair) error {
	switch what, err := m.Root.Look(r.Rel); {
	case errors.Is(err, unix.ENAMETOOLONG):
		return nil // nobody can name it, git no more than we
	case err != nil && !errors.Is(err, fs.ErrPermission):
		return err
	case err == nil && what.Kind == beneath.Absent:
		return nil // it went with the folder that it was in
	}
	switch r.Do {
	case Rename:
		return m.rename(r.Rel, r.Why)
	case Disarm:
		return m.disarm(r.Rel, r.Why)
	case Rewrite:
		if err := m.aside(r, func(to string) string { return r.Why + " taken out; as it was: " + to }); err != nil {
			return err
		}
		return m.allowed(path.Dir(r.Rel), func() error { return m.Root.Create(r.Rel, r.Content, 0o644) })
	}
	return m.aside(r, func(to string) string { return "moved to " + to + ": " + r.Why })
}

// disarm takes away by what git takes a folder for a repository.
func (m *Mender) disarm(rel, why string) error {
	for _, name := range []string{"HEAD", "commondir"} {
		what, err := m.Root.Look(path.Join(rel, name))
		if err == nil && what.Kind != beneath.Absent && what.Kind != beneath.Dir {
			return m.rename(path.Join(rel, name), why)
		}
	}
	return nil
}

// aside moves something of a git folder into a new folder in it, and notes what
// said tells of the place. A repository in what is moved is none any more.
func (m *Mender) aside(r Repair, said func(to string) string) error {
	if err := m.disarmAll(r.Rel); err != nil {
		return err
	}
	kept, err := m.keep(r.Git)
	if err != nil {
		return err
	}
	name := r.Rel
	if r.Git != "." {
		name = strings.TrimPrefix(name, r.Git+"/")
	}
	to := path.Join(kept, strings.ReplaceAll(name, "/", "-"))
	if base := path.Base(to); base == "HEAD" || base == ".git" { // or git takes the folder for a repository
		to += suffix
	}
	if to, err = m.free(to, "."); err != nil {
		return err
	}
	if err := m.move(r.Rel, to); err != nil {
		return err
	}
	m.Changes = append(m.Changes, Change{r.Rel, said(to), to})
	return nil
}

// free gives a name that nothing has, with a number behind it if need be. Behind
// a link there is none.
func (m *Mender) free(name, before string) (string, error) {
	const most = 10_000
	to := name
	for n := 1; n < most; n++ {
		what, err := m.Root.Look(to)
		if err != nil || what.Kind == beneath.Absent {
			return to, err
		}
		to = fmt.Sprintf("%s%s%d", name, before, n)
	}
	return "", fmt.Errorf("no name is free beside %s", name)
}

// disarmAll takes every git place away in a folder that is to be moved, in
// those places too, and every pipe, for which git would wait.
func (m *Mender) disarmAll(rel string) error {
	what, err := m.Root.Look(rel)
	if err != nil || what.Kind != beneath.Dir {
		return nil //nolint:nilerr // what cannot be looked at is moved all the same
	}
	for from, depth := []string{rel}, 0; len(from) > 0; depth++ {
		seen := wholeWalk(m.Root, from)
		if seen.Cut || depth > 100 {
			return errors.New("there is too much in it")
		}
		from = nil
		for _, place := range seen.Git {
			if what, err := m.Root.Look(place); err == nil && what.Kind == beneath.Dir {
				from = append(from, place)
				continue
			}
			if _, err := m.away(place); err != nil {
				return err
			}
		}
		for _, pipe := range seen.Files {
			if _, err := m.away(pipe.Rel); err != nil {
				return err
			}
		}
		for _, place := range seen.Bare {
			for _, sign := range []string{"HEAD", "commondir"} {
				at := path.Join(place, sign)
				what, err := m.Root.Look(at)
				if err == nil && (what.Kind == beneath.Absent || what.Kind == beneath.Dir) {
					continue
				}
				if _, err := m.away(at); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// away gives something another name, beside the old one.
func (m *Mender) away(rel string) (to string, err error) {
	if to, err = m.free(rel+suffix, "-"); err != nil {
		return "", err
	}
	return to, m.move(rel, to)
}

// wholeWalk looks for git places and pipes in folders, and opens what the agent
// closed.
func wholeWalk(root *beneath.Folder, from []string) *survey.Survey {
	const limit = 1_000_000
	return openWalk(root, survey.Question{From: from, Limit: limit})
}

// openWalk is [survey.Walk] that opens what the agent closed.
func openWalk(root *beneath.Folder, question survey.Question) *survey.Survey {
	seen := survey.Walk(root, question, nil)
	for range depthLimit {
		if len(seen.Closed) == 0 {
			break
		}
		for _, dir := range seen.Closed {
			_ = root.Chmod(dir, 0o755)
		}
		seen = survey.Walk(root, question, nil)
	}
	return seen
}

const suffix = ".claudebox-aside"

// move also takes things out of a folder that the agent has made read-only.
func (m *Mender) move(from, to string) error {
	do := func() error { return m.Root.Rename(from, to) }
	err := m.allowed(path.Dir(from), do)
	if errors.Is(err, fs.ErrPermission) { // a folder that moves is written to, too
		err = m.allowed(from, do)
	}
	return err
}

// allowed does something in a folder that the agent may have made read-only.
func (m *Mender) allowed(dir string, do func() error) error {
	err := do()
	if errors.Is(err, fs.ErrPermission) && m.Root.Chmod(dir, 0o755) == nil {
		err = do()
	}
	return err
}

// keep makes a folder for what is taken out of a git folder.
func (m *Mender) keep(git string) (string, error) {
	if at := m.kept[git]; at != "" {
		return at, nil
	}
	for n := 0; ; n++ {
		at := path.Join(git, Aside)
		if n > 0 {
			at = fmt.Sprintf("%s-%d", at, n)
		}
		err := m.allowed(git, func() error { return m.Root.Mkdir(at, 0o700) })
		if err == nil {
			if m.kept == nil {
				m.kept = map[string]string{}
			}
			m.kept[git] = at
			return at, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
}

// rename takes something away by giving it another name, beside the old one.
func (m *Mender) rename(rel, why string) error {
	if err := m.disarmAll(rel); err != nil {
		return err
	}
	to, err := m.away(rel)
	if err != nil {
		return err
	}
	m.Changes = append(m.Changes, Change{rel, "renamed to " + path.Base(to) + ": " + why, to})
	return nil
}
