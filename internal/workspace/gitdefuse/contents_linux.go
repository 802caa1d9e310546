package gitdefuse

import (
	"path"
	"path/filepath"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
)

// config leaves the harmless variables.
func (b *Bench) config(rel string) error { return b.clean(rel, "config", nil) }

func (b *Bench) worktreeConfig(rel string) error { return b.clean(rel, "config.worktree", nil) }

// Config leaves, in the configuration of a git folder of the user's own, the
// harmless variables and those that stood in it before.
func (b *Bench) Config(rel string, before []byte) error {
	b.saw(rel)
	return b.clean(rel, "config", before)
}

func (b *Bench) clean(dir, name string, before []byte) error {
	rel := path.Join(dir, name)
	what, err := b.look(rel)
	if err != nil || what.Kind == beneath.Absent {
		return err
	}
	var content []byte
	if what.Kind == beneath.Regular {
		_ = b.Root.Chmod(rel, 0o644)
		content, err = b.Root.Read(rel, configLimit)
	}
	if what.Kind != beneath.Regular || err != nil {
		return b.aside(rel, "moved to %s: it cannot be read")
	}
	clean, dropped := gitconfig.Harmless(content, before, func(tree string) bool { return b.inside(dir, tree) })
	if len(dropped) == 0 {
		return nil
	}
	if err := b.aside(rel, strings.Join(dropped, ", ")+" taken out; as it was: %s"); err != nil {
		return err
	}
	return b.allowed(dir, func() error { return b.Root.Create(rel, clean, 0o644) })
}

// inside tells whether a core.worktree of the git folder at dir lies below the
// root.
func (b *Bench) inside(dir, tree string) bool {
	to, ok := b.leads(dir, tree)
	if to == b.Root.Path() {
		return ok
	}
	below, is := strings.CutPrefix(to, b.Root.Path()+"/")
	what, err := b.Root.Look(below)
	return ok && is && err == nil && what.Kind == beneath.Dir
}

// leads says where a path that stands in a git folder, or beside a .git file,
// leads. One that the kernel may take to another place than its text says is
// not ok: behind a link ".." is not what stands before it, and C ends a text at
// a NUL.
func (b *Bench) leads(dir, text string) (to string, ok bool) {
	ok = path.Clean(text) == strings.TrimSuffix(text, "/") && !strings.Contains(text, "\x00")
	if !filepath.IsAbs(text) {
		text = b.Root.Join(dir) + "/" + text
	}
	return path.Clean(text), ok
}

// hooks moves every hook that git would run. Samples stay.
func (b *Bench) hooks(rel string) error {
	dir := path.Join(rel, "hooks")
	names, err := b.names(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sample") {
			continue
		}
		if err := b.aside(path.Join(dir, name), "moved to %s: git would run it"); err != nil {
			return err
		}
	}
	return nil
}

// linked tells the git folder of a linked worktree as git itself makes it: it
// takes everything from the folder two above, which was judged before.
func (b *Bench) linked(rel string) bool {
	content, err := b.Root.Read(path.Join(rel, "commondir"), smallLimit)
	common, ok := commonOf(rel)
	return err == nil && strings.TrimRight(string(content), "\n") == "../.." && ok && (b.seen[common] || b.known(common))
}

// commonOf is the folder that the git folder of a linked worktree belongs to,
// by its path.
func commonOf(rel string) (common string, ok bool) {
	above := path.Dir(rel)
	return path.Dir(above), path.Base(above) == "worktrees"
}

// elsewhere moves what sends git to another folder, or to remotes of an old
// form.
func (b *Bench) elsewhere(rel string) error {
	for _, name := range []string{"commondir", "remotes", "branches"} {
		at := path.Join(rel, name)
		what, err := b.look(at)
		if err != nil {
			return err
		}
		if what.Kind == beneath.Absent || name != "commondir" && b.empty(at, what) || name == "commondir" && b.same(at) {
			continue
		}
		if err := b.aside(at, "moved to %s: it sends git elsewhere"); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) empty(rel string, what beneath.Entry) bool {
	names, err := b.Root.Names(rel, nameLimit)
	return what.Kind == beneath.Dir && err == nil && len(names) == 0
}

// same tells a commondir that says "here", as package project makes it.
func (b *Bench) same(rel string) bool {
	content, err := b.Root.Read(rel, smallLimit)
	return err == nil && string(content) == "./\n"
}
