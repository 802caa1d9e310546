package gitdefuse

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
)

// Change is one thing that was taken out of the host's git's reach.
type Change struct {
	Rel  string // what it was, below the root
	Text string // what was done
}

// Bench is where git folders are made harmless.
type Bench struct {
	Root *beneath.Folder
	// Known tells which git folders, by their path, are the user's own. A .git
	// file that leads to one of them is fine, and they are left alone.
	Known func(path string) bool
	// Changes are what was done so far.
	Changes []Change

	seen map[string]bool
	kept map[string]string // folders for what is taken out, by git folder
}

const (
	// configLimit is what a configuration may have, in bytes.
	configLimit = 1 << 20
	// smallLimit is what a file with one path in it, or a list of commits, may
	// have, in bytes.
	smallLimit = 256 << 10
	// nameLimit is how many names one folder of git's may have.
	nameLimit = 100_000
	// depthLimit is how deep submodules lie in each other.
	depthLimit = 20
)

// Place makes harmless what lies at rel, an entry named .git.
func (b *Bench) Place(rel string) error {
	if b.known(rel) {
		return nil
	}
	what, err := b.look(rel)
	if err != nil {
		return err
	}
	switch what.Kind {
	case beneath.Absent:
		return nil
	case beneath.Dir:
		return b.Folder(rel)
	case beneath.Regular:
		return b.file(rel)
	}
	return b.renamed(rel, "it is a link, or no file at all")
}

// Folder makes one git folder harmless, with all that lie in it.
func (b *Bench) Folder(rel string) error { return b.folder(rel, depthLimit) }

func (b *Bench) folder(rel string, depth int) error {
	if b.seen[rel] || b.known(rel) {
		return nil
	}
	what, err := b.look(rel)
	switch {
	case err != nil || what.Kind == beneath.Regular:
		return err
	case depth == 0:
		return b.aside(rel, "moved to %s: it lies too deep")
	case what.Kind != beneath.Dir:
		return b.aside(rel, "moved to %s: it is no folder")
	}
	b.saw(rel)
	_ = b.Root.Chmod(rel, 0o755) // what the agent closed it can open again
	steps := []func(string) error{b.config, b.worktreeConfig, b.hooks, b.Running}
	if !b.linked(rel) {
		steps = append(steps, b.elsewhere)
	}
	for _, step := range steps {
		if err := step(rel); err != nil {
			return err
		}
	}
	return b.inner(rel, depth)
}

func (b *Bench) saw(rel string) {
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[rel] = true
}

// Inner makes harmless the submodules and worktrees in a git folder, which may
// itself be the user's own.
func (b *Bench) Inner(rel string) error {
	b.saw(rel)
	return b.inner(rel, depthLimit)
}

func (b *Bench) inner(rel string, depth int) error {
	if err := b.worktrees(rel, depth); err != nil {
		return err
	}
	return b.modules(path.Join(rel, "modules"), depth)
}

func (b *Bench) worktrees(rel string, depth int) error {
	names, err := b.names(path.Join(rel, "worktrees"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := b.folder(path.Join(rel, "worktrees", name), depth-1); err != nil {
			return err
		}
	}
	return nil
}

// modules goes through a folder of submodules. One with a slash in its name
// lies in a folder of the name's first part, so what is none is looked into.
func (b *Bench) modules(rel string, depth int) error {
	names, err := b.names(rel)
	if err != nil {
		return err
	}
	for _, name := range names {
		at := path.Join(rel, name)
		do := b.folder
		if !b.known(at) && !b.isGitFolder(at) {
			do = b.modules
		}
		if depth == 0 {
			return b.aside(rel, "moved to %s: it lies too deep")
		}
		if err := do(at, depth-1); err != nil {
			return err
		}
		if b.known(at) {
			if err := b.inner(at, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// isGitFolder tells a git folder from a part of a name. One sign is enough.
func (b *Bench) isGitFolder(rel string) bool {
	for _, sign := range []string{"HEAD", "config", "hooks", "commondir", "objects", "refs"} {
		if what, err := b.Root.Look(path.Join(rel, sign)); err != nil || what.Kind != beneath.Absent {
			return true
		}
	}
	return false
}

func (b *Bench) known(rel string) bool {
	return b.Known != nil && b.Known(path.Join(b.Root.Path(), rel))
}

// look is [beneath.Folder.Look] that opens what the agent has closed.
func (b *Bench) look(rel string) (beneath.Entry, error) {
	what, err := b.Root.Look(rel)
	if errors.Is(err, fs.ErrPermission) {
		_ = b.Root.Chmod(path.Dir(rel), 0o755)
		what, err = b.Root.Look(rel)
	}
	return what, err
}

// names lists a folder, in order. What is no folder, but a link for one, goes:
// what it leads to could be anything.
func (b *Bench) names(rel string) ([]string, error) {
	what, err := b.look(rel)
	switch {
	case err != nil || what.Kind == beneath.Absent:
		return nil, err
	case what.Kind != beneath.Dir:
		return nil, b.aside(rel, "moved to %s: it is no folder")
	}
	_ = b.Root.Chmod(rel, 0o755)
	names, err := b.Root.Names(rel, nameLimit)
	if errors.Is(err, beneath.ErrTooLarge) {
		return nil, b.aside(rel, "moved to %s: there is too much in it")
	}
	slices.Sort(names)
	return names, err
}

// file judges a .git file: what it leads to is made harmless; one that leads
// to what is not below the root, and not the user's, goes.
func (b *Bench) file(rel string) error {
	content, err := b.Root.Read(rel, smallLimit)
	if err != nil {
		return b.renamed(rel, "it cannot be read, or is too large")
	}
	text, ok := strings.CutPrefix(string(content), "gitdir: ")
	if !ok {
		return nil // git takes it for no repository either
	}
	target, ok := b.leads(path.Dir(rel), strings.TrimRight(text, "\r\n"))
	if !ok {
		return b.renamed(rel, "it leads to another place than it says")
	}
	if b.Known != nil && b.Known(target) {
		return nil
	}
	below, ok := strings.CutPrefix(target, b.Root.Path()+"/")
	if !ok {
		return b.renamed(rel, "it leads to "+target)
	}
	if common, ok := commonOf(below); ok && path.Base(common) == ".git" {
		if err := b.Place(common); err != nil {
			return err
		}
	}
	if slices.Contains(strings.Split(below, "/"), ".git") && b.hasHead(below) {
		return b.Folder(below)
	}
	before := len(b.Changes)
	if err := b.Bare(below); err != nil {
		return err
	}
	// git takes a folder without HEAD for none, but the next session could put
	// one there.
	if len(b.Changes) > before || !b.hasHead(below) {
		return b.renamed(rel, "it leads to "+below+", which is no repository")
	}
	return nil
}

func (b *Bench) hasHead(rel string) bool {
	what, err := b.look(path.Join(rel, "HEAD"))
	return err == nil && what.Kind == beneath.Regular
}
