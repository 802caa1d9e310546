package project

import (
	"path"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
)

// secrets covers what is secret in a git folder that is not protected
// otherwise.
func (g *gitFolder) secrets() error {
	if g.at == g.o.tree {
		g.o.judged = append(g.o.judged, g.Rel())
	}
	for _, name := range []string{"config", "config.worktree"} {
		if err := g.copyOf(name); err != nil {
			return err
		}
	}
	return g.copies()
}

// copies covers what people and programs leave in a git folder: copies of its
// configuration (config.bak), passwords (git-credential-store(1)), addresses with
// a password in them, and what git-lfs writes down.
func (g *gitFolder) copies() error {
	for _, e := range g.Entries {
		name := e.Name
		cover := g.copyOf
		switch {
		case strings.Contains(name, "/") || name == "config" || name == "config.worktree": // has been dealt with
			continue
		case strings.HasPrefix(name, git.Aside): // configurations as they were, secrets included
			cover = g.hidden
		case name == "remotes" || name == "branches": // addresses, as git wrote them once (gitrepository-layout(5))
			if !g.holds(name) {
				continue
			}
			cover = g.hidden
		case name == "FETCH_HEAD":
			cover = g.addresses
		case name == "logs":
			if content, err := g.at.Read(g.rel("logs/HEAD"), configLimit); err != nil || !hasUserinfo(content) {
				continue
			}
			cover = g.addresses
		case name == "lfs":
			cover = g.tokens
		case name == "credentials" || secretfile.Of(nil, []byte(name)) == secretfile.Secret:
			cover = g.hidden
		case !strings.HasPrefix(strings.ToLower(name), "config"):
			continue
		}
		if err := cover(name); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether something was seen in a folder of the git folder.
func (g *gitFolder) holds(name string) bool {
	for _, e := range g.Entries {
		if strings.HasPrefix(e.Name, name+"/") {
			return true
		}
	}
	return false
}

// copyOf covers a configuration with secrets in it by a copy without them.
func (g *gitFolder) copyOf(name string) error {
	rel := g.rel(name)
	what, err := g.at.Look(rel)
	if err != nil || what.Kind != beneath.Regular || g.letIn(rel) {
		return err
	}
	content, err := g.at.Read(rel, configLimit)
	if err != nil {
		return g.hidden(name)
	}
	if gitconfig.HoldsSecrets(content) {
		g.copied(rel, gitconfig.Sanitise(content))
	}
	return nil
}

func (g *gitFolder) copied(rel string, content []byte) {
	g.made(rel, content, whySecret)
	if g.at == g.o.tree {
		g.o.copied = append(g.o.copied, rel)
	}
}

// walkIn lists the files in a folder of the git folder, or a file alone.
func (g *gitFolder) walkIn(name string, skipped ...string) []survey.File {
	const limit = 2000
	if e := g.Entry(name); e.Kind == beneath.Regular {
		return []survey.File{{Rel: g.rel(name), Kind: e.Kind}}
	}
	question := survey.Question{From: []string{g.rel(name)}, Skipped: skipped, Wanted: survey.Everything, Limit: limit}
	return survey.Walk(g.at, question, nil).Files
}

// addresses covers logs of git's in which an address with a password stands: git
// before 2.28 wrote them as they were typed. Inside, git cannot write there.
func (g *gitFolder) addresses(name string) error {
	for _, f := range g.walkIn(name) {
		if f.Kind != beneath.Regular {
			continue
		}
		content, err := g.at.Read(f.Rel, configLimit)
		if err == nil && hasUserinfo(content) && !g.letIn(f.Rel) {
			g.copied(f.Rel, []byte(gitconfig.StripUserinfo(string(content))))
			g.o.note(true, g.at.Join(f.Rel)+" holds an address with a password: inside it is a copy without, "+
				"which git cannot write to; take the password out of the file")
		}
	}
	return nil
}

func hasUserinfo(content []byte) bool {
	return gitconfig.StripUserinfo(string(content)) != string(content)
}

// tokens hides the files in a folder that hold a token, or an address with a
// password.
func (g *gitFolder) tokens(name string) error {
	for _, f := range g.walkIn(name, "objects") {
		if f.Kind != beneath.Regular {
			continue
		}
		content, err := g.at.Read(f.Rel, configLimit)
		if err != nil || secretfile.HoldsToken(content) || hasUserinfo(content) {
			if err := g.hidden(strings.TrimPrefix(f.Rel, strings.TrimPrefix(g.Rel()+"/", "./"))); err != nil {
				return err
			}
		}
	}
	return nil
}

// hidden covers a file or folder by nothing.
func (g *gitFolder) hidden(name string) error {
	rel := g.rel(name)
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

// letIn reports whether something is no secret of this sandbox: the profile shows
// it, or it is tracked, as the bare repositories of a test.
func (g *gitFolder) letIn(rel string) bool {
	return g.at == g.o.tree && (g.o.shown(rel) || g.o.tracked.Has(rel) || g.o.tracked.Has(path.Dir(rel)+"/config"))
}
