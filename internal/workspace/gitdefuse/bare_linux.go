package gitdefuse

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitconfig"
)

// Bare makes harmless a folder with a name of its own that git takes for a
// repository by what is in it. It may be a folder of the user's to which only
// that was added, so where git would run anything nothing is moved but HEAD,
// without which git takes it for none.
func (b *Bench) Bare(rel string) error {
	if b.seen[rel] || b.known(rel) {
		return nil
	}
	what, err := b.look(path.Join(rel, "HEAD"))
	if err != nil || what.Kind == beneath.Absent || what.Kind == beneath.Regular && !b.isHead(path.Join(rel, "HEAD")) {
		return err
	}
	if what.Kind != beneath.Regular || b.runsSomething(rel) {
		return b.renamed(path.Join(rel, "HEAD"), "git took "+rel+" for a repository, and would run what is in it")
	}
	b.saw(rel)
	return b.worktrees(rel, depthLimit)
}

// isHead tells what git takes for a HEAD (refs.c, setup.c: validate_headref).
func (b *Bench) isHead(rel string) bool {
	content, err := b.Root.Read(rel, smallLimit)
	text := strings.TrimRight(string(content), " \t\r\n")
	return err != nil || strings.HasPrefix(text, "ref:") || len(text) >= 40 && strings.Trim(text[:40], "0123456789abcdefABCDEF") == ""
}

// runsSomething tells whether git would run anything by what stands in a git
// folder.
func (b *Bench) runsSomething(rel string) bool {
	for _, name := range []string{"config", "config.worktree"} {
		at := path.Join(rel, name)
		if what, err := b.look(at); err == nil && what.Kind == beneath.Absent {
			continue
		}
		content, err := b.Root.Read(at, configLimit)
		if err != nil {
			return true
		}
		if _, dropped := gitconfig.Harmless(content, nil, func(tree string) bool { return b.inside(rel, tree) }); len(dropped) > 0 {
			return true
		}
	}
	if what, err := b.look(path.Join(rel, "commondir")); err != nil || what.Kind != beneath.Absent && !b.same(path.Join(rel, "commondir")) {
		return true
	}
	runs := func(name string) bool {
		runs, err := Runs(b.Root, path.Join(rel, name))
		return runs || err != nil
	}
	return b.hasHooks(rel) || slices.ContainsFunc(RunningPlaces(), runs)
}

func (b *Bench) hasHooks(rel string) bool {
	what, err := b.look(path.Join(rel, "hooks"))
	if err != nil || what.Kind == beneath.Absent {
		return err != nil
	}
	names, err := b.Root.Names(path.Join(rel, "hooks"), nameLimit)
	return err != nil || slices.ContainsFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".sample") })
}
