package project

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
)

// secrets covers all that is secret in a git folder that is not protected
// otherwise.
func (g *gitFolder) secrets() error {
	if g.at == g.v.tree {
		g.judged = append(g.judged, g.Rel())
	}
	for _, name := range []string{"config", "config.worktree"} {
		if err := g.coverFile(g.rel(name), withoutSecrets); err != nil {
			return err
		}
	}
	return g.leftovers()
}

// leftovers covers what people and programs leave in a git folder: copies of its
// configuration (config.bak), passwords (git-credential-store(1)), addresses with
// a password in them, and what git-lfs writes down.
func (g *gitFolder) leftovers() error {
	for _, e := range g.Entries {
		var err error
		switch name := e.Name; {
		case strings.Contains(name, "/") || name == "config" || name == "config.worktree": // has been dealt with
		case name == "remotes" || name == "branches": // addresses, as git wrote them once (gitrepository-layout(5))
			if slices.ContainsFunc(g.Entries, func(in git.Entry) bool { return strings.HasPrefix(in.Name, name+"/") }) {
				err = g.coverFile(g.rel(name), nil)
			}
		case strings.HasPrefix(name, git.Aside), // configurations as they were, secrets included
			name == "credentials" || secretfile.Of(nil, []byte(name)) == secretfile.Secret:
			err = g.coverFile(g.rel(name), nil)
		case name == "FETCH_HEAD":
			err = g.coverFile(g.rel(name), withoutPasswords)
		case name == "logs":
			if content, fault := g.at.Read(g.rel("logs/HEAD"), configLimit); fault == nil && hasUserinfo(content) {
				err = g.coverAll(name, withoutPasswords)
			}
		case name == "lfs":
			err = g.coverAll(name, tokens, "objects")
		case strings.HasPrefix(strings.ToLower(name), "config"):
			err = g.coverFile(g.rel(name), withoutSecrets)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// instead says what is seen instead of a file with some content, or of one that
// could not be read: the same, another content, or nothing of it.
type instead func(content []byte, read bool) (copied []byte, covered bool)

// withoutSecrets is for configurations of git.
func withoutSecrets(content []byte, read bool) ([]byte, bool) {
	if !read || !gitconfig.HoldsSecrets(content) {
		return nil, !read
	}
	return gitconfig.Sanitise(content), true
}

// withoutPasswords is for what git writes down: before 2.28 it wrote addresses as
// they were typed.
func withoutPasswords(content []byte, read bool) ([]byte, bool) {
	return []byte(gitconfig.StripUserinfo(string(content))), read && hasUserinfo(content)
}

// tokens is for files that may hold a token, or an address with a password.
func tokens(content []byte, read bool) ([]byte, bool) {
	return nil, !read || secretfile.HoldsToken(content) || hasUserinfo(content)
}

func hasUserinfo(content []byte) bool {
	return gitconfig.StripUserinfo(string(content)) != string(content)
}

// coverAll covers the files in a folder of the git folder, or one file.
func (g *gitFolder) coverAll(name string, by instead, skipped ...string) error {
	const limit = 2000
	files := []survey.File{{Rel: g.rel(name)}}
	if g.Entry(name).Kind != beneath.Regular {
		files = survey.Walk(g.at, survey.Question{
			From: []string{g.rel(name)}, Skipped: skipped, Wanted: survey.Everything, Limit: limit,
		}, nil).Files
	}
	for _, f := range files {
		if f.Kind == beneath.Dir {
			continue
		}
		if err := g.coverFile(f.Rel, by); err != nil {
			return err
		}
	}
	return nil
}

// coverFile covers a file if it is a secret; one without a rule, or a folder, by
// nothing. What the profile shows is none of this sandbox, nor what is tracked, as
// the bare repositories of a test.
func (g *gitFolder) coverFile(rel string, by instead) error {
	inner := g.at == g.v.tree
	what, err := g.at.Look(rel)
	if err != nil || what.Kind != beneath.Regular && (what.Kind != beneath.Dir || by != nil) ||
		inner && (g.v.shown(rel) || g.v.tracked.Has(rel) || g.v.tracked.Has(path.Dir(rel)+"/config")) {
		return err
	}
	var copied []byte
	if by != nil {
		content, err := g.at.Read(rel, configLimit)
		covered := false
		if copied, covered = by(content, err == nil); !covered {
			return nil
		}
	}
	if copied == nil {
		g.hide(rel, what.Kind == beneath.Dir)
		if inner {
			g.stay = append(g.stay, rel)
		}
		return nil
	}
	g.cover(rel, Mount{Mode: Made, Content: copied, Why: whySecrets})
	if inner {
		g.copied, g.stay = append(g.copied, rel), append(g.stay, rel)
	}
	if path.Base(rel) == "FETCH_HEAD" || strings.HasPrefix(rel, g.rel("logs")+"/") {
		g.note(true, "%s holds an address with a password: inside it is a copy without, which git cannot write to; "+
			"take the password out of the file", g.at.Join(rel))
	}
	return nil
}
