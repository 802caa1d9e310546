package project

import (
	"path"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/secretfile"
)

// whySecret is of what is covered for the secrets in it alone.
const whySecret = "there are secrets in it"

// secrets covers what is secret in a git folder that is not protected
// otherwise.
func (g *gitGuard) secrets(rel string) error {
	if g.at == g.o.tree {
		g.o.judged = append(g.o.judged, rel)
	}
	for _, name := range []string{"config", "config.worktree"} {
		if err := g.copyOf(path.Join(rel, name)); err != nil {
			return err
		}
	}
	if err := g.copies(rel); err != nil {
		return err
	}
	modules := path.Join(rel, "modules")
	if what, err := g.at.Look(modules); err != nil || what.Kind != beneath.Dir {
		return err
	}
	names, err := g.list(modules)
	for _, name := range names {
		if what, _ := g.at.Look(path.Join(modules, name)); err == nil && what.Kind == beneath.Dir {
			err = g.secrets(path.Join(modules, name))
		}
	}
	return err
}

// copies covers what people and programs leave beside a configuration of git:
// copies of it (config.bak), and passwords (git-credential-store(1)).
func (g *gitGuard) copies(rel string) error {
	names, err := g.list(rel)
	if err != nil {
		return err
	}
	for _, name := range names {
		cover := g.copyOf
		switch {
		case name == "config" || name == "config.worktree": // has been dealt with
			continue
		case strings.HasPrefix(name, git.Aside): // configurations as they were, secrets included
			cover = g.hidden
		case name == "remotes" || name == "branches": // addresses, as git wrote them once (gitrepository-layout(5))
			if inside, err := g.list(path.Join(rel, name)); err != nil || len(inside) == 0 {
				continue
			}
			cover = g.hidden
		case name == "credentials" || secretfile.Of(nil, []byte(name)) == secretfile.Secret:
			cover = g.hidden
		case !strings.HasPrefix(strings.ToLower(name), "config"):
			continue
		}
		if err := cover(path.Join(rel, name)); err != nil {
			return err
		}
	}
	return nil
}

// copyOf covers a configuration with secrets in it by a copy without them.
func (g *gitGuard) copyOf(rel string) error {
	what, err := g.at.Look(rel)
	if err != nil || what.Kind != beneath.Regular || g.letIn(rel) {
		return err
	}
	content, err := g.at.Read(rel, configLimit)
	if err != nil {
		return g.hidden(rel)
	}
	if gitconfig.HoldsSecrets(content) {
		g.made(rel, gitconfig.Sanitise(content), whySecret)
		if g.at == g.o.tree {
			g.o.copied = append(g.o.copied, rel)
		}
	}
	return nil
}

// hidden covers a file or folder by nothing.
func (g *gitGuard) hidden(rel string) error {
	what, err := g.at.Look(rel)
	if err != nil || what.Kind != beneath.Regular && what.Kind != beneath.Dir || g.letIn(rel) {
		return err
	}
	g.pin(path.Dir(rel), whyHidden)
	g.add(Mount{Mode: Hidden, Dir: what.Kind == beneath.Dir, Why: whyHidden}, rel)
	if g.at == g.o.tree {
		g.o.Hidden, g.o.Stay = append(g.o.Hidden, rel), append(g.o.Stay, rel)
	}
	return nil
}

// letIn tells what is no secret of this sandbox: the profile shows it, or it is
// tracked, as the bare repositories of a test.
func (g *gitGuard) letIn(rel string) bool {
	return g.at == g.o.tree && (g.o.shown(rel) || g.o.tracked.Has(rel) || g.o.tracked.Has(path.Dir(rel)+"/config"))
}
