package project

import (
	"path"
	"path/filepath"
	"strings"

	"claudebox/internal/beneath"
	"claudebox/internal/gitconfig"
	"claudebox/internal/placeholder"
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
// makes git read or run.
func (g *gitGuard) learn(entries []gitconfig.Entry, dir string) {
	for _, e := range entries {
		switch {
		case e.Section == "remote" && e.Name == "url" && g.repos == 0:
			g.o.Repo.Remotes = append(g.o.Repo.Remotes, e.Value)
		case e.Section == "core" && e.Name == "hookspath":
			g.o.kept(g.o.named(g.worktreeRoot, e.Value), true, whyHooks)
		case e.Name == "path" && (e.Section == "include" || e.Section == "includeif"):
			rel := g.o.named(g.at.Join(dir), e.Value)
			if rel != "" {
				g.o.configuration = append(g.o.configuration, rel)
			}
			g.o.kept(rel, false, whyConfig)
		case isCommand(e):
			g.o.namedWords(g.worktreeRoot, e.Value)
		}
	}
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
		if strings.Contains(word, "/") {
			o.named(from, word)
		}
	}
}

func endsWord(r rune) bool { return strings.ContainsRune(" \t\n\"'`;|&()<>=!$", r) }

// named adds a path that git's configuration names to those the host
// executes, when it lies in the project; empty when it does not.
func (o *opener) named(from, name string) (rel string) {
	if !filepath.IsAbs(name) {
		name = from + "/" + name
	}
	if name = path.Clean(name); !o.contains(name) || name == o.Path || isBelow(name, o.Path+"/.git") {
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
