package project

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/placeholder"
)

// commandVariables are git's variables that hold a command, by section and
// name; an empty name stands for any.
var commandVariables = []struct{ section, name string }{
	{"core", "fsmonitor"},
	{"core", "editor"},
	{"core", "pager"},
	{"core", "sshcommand"},
	{"core", "askpass"},
	{"core", "gitproxy"},
	{"core", "alternaterefscommand"},
	{"sequence", "editor"},
	{"pager", ""},
	{"alias", ""},
	{"diff", "external"},
	{"diff", "command"},
	{"diff", "textconv"},
	{"interactive", "difffilter"},
	{"difftool", "cmd"},
	{"mergetool", "cmd"},
	{"merge", "driver"},
	{"filter", "clean"},
	{"filter", "smudge"},
	{"filter", "process"},
	{"credential", "helper"},
	{"gpg", "program"},
	{"trailer", "command"},
	{"trailer", "cmd"},
	{"submodule", "update"},
	{"remote", "uploadpack"},
	{"remote", "receivepack"},
	{"uploadpack", "packobjectshook"},
}

// learn takes down remotes, and files of the project that this configuration
// makes git read or run. dir is the folder of its file.
func (g *gitGuard) learn(entries []gitconfig.Entry, dir string) {
	for _, e := range entries {
		switch {
		case e.Section == "remote" && e.Name == "url" && g.repos == 0:
			g.o.Repo.Remotes = append(g.o.Repo.Remotes, e.Value)
		case e.Section == "core" && e.Name == "hookspath":
			if !g.inCommon(g.worktreeRoot, e.Value, true, whyHooks) {
				g.o.kept(g.o.named(g.worktreeRoot, e.Value), true, whyHooks)
			}
		case gitconfig.IsInclude(e):
			if !g.inCommon(dir, e.Value, false, whyConfig) {
				g.include(g.o.named(dir, e.Value))
			}
		case isCommand(e):
			g.o.namedWords(g.worktreeRoot, e.Value)
		}
	}
}

// include protects a configuration in the project that another one includes,
// and what it names and includes itself.
func (g *gitGuard) include(rel string) {
	if rel == "" || slices.Contains(g.o.included, rel) {
		return
	}
	g.o.configuration, g.o.included = append(g.o.configuration, rel), append(g.o.included, rel)
	g.o.kept(rel, false, whyConfig)
	if content, err := g.o.tree.Read(rel, configLimit); err == nil {
		entries, _ := gitconfig.Parse(content)
		g.learn(entries, path.Dir(g.o.tree.Join(rel)))
	}
}

// inCommon protects what configuration names in a common folder outside of the
// project, where the agent can write too.
func (g *gitGuard) inCommon(dir, name string, isDir bool, why string) bool {
	common := g.o.Repo.Common
	if !filepath.IsAbs(name) {
		name = dir + "/" + name
	}
	if name = path.Clean(name); common == "" || g.o.contains(common) || g.at.Path() != common || name == common ||
		!pathname.Below(name, common) {
		return false
	}
	rel := relative(common, name)
	what, err := g.at.Look(rel)
	switch {
	case err == nil && what.Kind == beneath.Absent:
		if above, err := g.at.Look(path.Dir(rel)); err != nil || above.Kind != beneath.Dir {
			g.o.note(true, name+" is not there, and the agent can make it: "+why)
			return true
		}
		g.placeholder(placeholder.Placeholder{Rel: rel, Dir: isDir}, why)
	case err == nil && g.existing(rel, why) == nil:
	default:
		g.o.note(true, name+" cannot be protected: "+why)
	}
	return true
}

func isCommand(e gitconfig.Entry) bool {
	section, _, _ := strings.Cut(e.Section, ".")
	for _, v := range commandVariables {
		if section == v.section && (v.name == "" || e.Name == v.name) {
			return true
		}
	}
	return false
}

// namedWords adds those words of a shell command that look like paths. One
// without a slash is looked up on PATH.
func (o *opener) namedWords(from, command string) {
	for _, word := range strings.FieldsFunc(command, endsWord) {
		if strings.Contains(word, "/") && !o.isGitsOwn(from, word) {
			o.named(from, word)
		}
	}
}

// isGitsOwn tells a file by which git works, as its index, from a program that
// lies beside it.
func (o *opener) isGitsOwn(from, word string) bool {
	if !filepath.IsAbs(word) {
		word = from + "/" + word
	}
	if word = path.Clean(word); !o.contains(word) || !slices.Contains(strings.Split(word, "/"), ".git") {
		return false
	}
	what, err := o.tree.Look(relative(o.Path, word))
	return err != nil || what.Kind != beneath.Regular || what.Perm&0o111 == 0
}

func endsWord(r rune) bool { return strings.ContainsRune(" \t\n\"'`;|&()<>=!$", r) }

// named adds a path that git's configuration names to those the host
// executes, when it lies in the project; empty when it does not.
func (o *opener) named(from, name string) (rel string) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = path.Join(o.Home, rest)
	}
	if !filepath.IsAbs(name) {
		name = from + "/" + name
	}
	if name = path.Clean(name); !o.contains(name) || name == o.Path || name == o.Path+"/.git" ||
		pathname.Below(name, o.Path+"/.git/hooks") {
		return ""
	}
	rel = relative(o.Path, name)
	o.alsoExecuted = append(o.alsoExecuted, rel)
	return rel
}

// kept keeps a place empty that the host's git would obey as soon as something
// is there. Where even its folder is missing, it can only be told.
func (o *opener) kept(rel string, dir bool, why string) {
	if rel == "" {
		return
	}
	g := guard{o, o.tree}
	if what, err := o.tree.Look(rel); err != nil || what.Kind != beneath.Absent {
		o.placeholders = append(o.placeholders, placeholder.Placeholder{Root: o.Path, Rel: rel, Keep: true})
		return
	}
	if what, err := o.tree.Look(path.Dir(rel)); err != nil || what.Kind != beneath.Dir {
		o.note(true, g.at.Join(rel)+" is not there, and the agent can make it: "+why)
		return
	}
	g.placeholder(placeholder.Placeholder{Rel: rel, Dir: dir}, why)
}
