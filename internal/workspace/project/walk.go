package project

import (
	"path"

	"claudebox/internal/linux/beneath"
)

// nested protects the repositories below the project's own: clones, and the
// working trees of submodules and worktrees. A folder of repositories is a
// project too, and the host's git runs what their configuration names. A
// folder that is a repository itself (bare) is protected nowhere: most are
// tracked files of a test. It is looked at when the session has ended; only what
// is secret in its configuration stays out.
func (o *opener) nested() error {
	g := gitGuard{guard: guard{o, o.tree}}
	for _, rel := range o.Seen.Git {
		if rel == ".git" { // has been dealt with
			continue
		}
		if err := g.nestedRepo(rel); err != nil {
			return err
		}
	}
	for _, rel := range o.Seen.Bare {
		if rel == "." {
			continue
		}
		if err := g.secrets(rel); err != nil {
			return err
		}
	}
	return nil
}

// nestedRepo protects one .git.
func (g *gitGuard) nestedRepo(rel string) error {
	what, err := g.at.Look(rel)
	if err != nil || what.Kind != beneath.Dir {
		return g.existing(rel, whyMoved)
	}
	if ok, err := g.counts(rel); err != nil || !ok {
		return err
	}
	g.worktreeRoot = g.at.Join(path.Dir(rel))
	return g.folder(rel)
}
