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

// UserGit is a file of the user's own git configuration.
type UserGit struct {
	Dir     string // the folder that it lies in
	Entries []gitconfig.Entry
}

// configuration is one that git obeys in the project.
type configuration struct {
	entries []gitconfig.Entry
	dir     string // of its file
	tree    string // where git starts programs
	users   bool   // it is the user's own, for every repository
}

// learnAll takes down what all configurations make git read or run in the
// project.
func (o *opener) learnAll(folders []gitFolder) {
	trees := []string{o.Path}
	if o.Repo.Worktree != "" {
		trees[0] = o.Repo.Worktree
	}
	for _, g := range folders {
		if !g.guarded {
			continue
		}
		main := g.settings("config")
		if g.own {
			o.Scope.Hash = hashSize(main)
			for _, e := range main {
				if e.Section == "remote" && e.Name == "url" {
					o.Repo.Remotes = append(o.Repo.Remotes, e.Value)
				}
			}
		}
		for _, entries := range [][]gitconfig.Entry{main, g.settings("config.worktree")} {
			o.learn(configuration{entries, g.Path, g.tree, false})
		}
	}
	for _, place := range o.Seen.Git {
		if place != ".git" {
			trees = append(trees, o.tree.Join(path.Dir(place)))
		}
	}
	for _, file := range o.UserGit {
		for i, tree := range trees {
			entries := file.Entries
			if i > 0 {
				entries = slices.DeleteFunc(slices.Clone(entries), func(e gitconfig.Entry) bool {
					return !isHooksPath(e) || filepath.IsAbs(e.Value)
				})
			}
			o.learn(configuration{entries, file.Dir, tree, i == 0})
		}
	}
}

// learn takes down files of the project that one configuration makes git read or
// run.
func (o *opener) learn(c configuration) {
	for _, e := range c.entries {
		switch {
		case isHooksPath(e):
			o.keepNamed(c.tree, e.Value, true, whyHooks)
			if c.users && !filepath.IsAbs(e.Value) && e.Value != "" && e.Value[0] != '~' {
				o.note(true, "your git runs hooks from "+e.Value+" of any repository (core.hooksPath): "+
					"look into one that was made inside before you use git there")
			}
		case gitconfig.IsInclude(e):
			if rel := o.keepNamed(c.dir, e.Value, false, whyConfig); rel != "" && !slices.Contains(o.included, rel) {
				o.configured, o.included = append(o.configured, rel), append(o.included, rel)
				if content, err := o.tree.Read(rel, configLimit); err == nil && !c.users {
					entries, _ := gitconfig.Parse(content)
					o.learn(configuration{entries, path.Dir(o.tree.Join(rel)), c.tree, false})
				}
			}
		case isCommand(e):
			o.namedWords(c.tree, e.Value)
		}
	}
}

func isHooksPath(e gitconfig.Entry) bool { return e.Section == "core" && e.Name == "hookspath" }

// keepNamed keeps what a configuration names, in the project or in the common
// folder. It gives where it lies in the project.
func (o *opener) keepNamed(from, name string, dir bool, why string) (rel string) {
	if o.inCommon(from, name, dir, why) {
		return ""
	}
	rel = o.alsoNamed(from, name)
	o.kept(rel, dir, why)
	return rel
}

// inCommon protects what configuration names in a common folder outside of the
// project, where the agent can write too.
func (o *opener) inCommon(dir, name string, isDir bool, why string) bool {
	if !filepath.IsAbs(name) {
		name = dir + "/" + name
	}
	if name = path.Clean(name); o.common == nil || name == o.Repo.Common || !pathname.Below(name, o.Repo.Common) {
		return false
	}
	g, rel := guard{o, o.common}, relative(o.Repo.Common, name)
	what, err := g.at.Look(rel)
	switch {
	case err == nil && what.Kind == beneath.Absent:
		if above, err := g.at.Look(path.Dir(rel)); err != nil || above.Kind != beneath.Dir {
			o.note(true, name+" is not there, and the agent can make it: "+why)
			return true
		}
		g.placeholder(placeholder.Placeholder{Rel: rel, Dir: isDir}, why)
	case err == nil:
		g.keep(rel, what.Kind, why)
	default:
		o.note(true, name+" cannot be protected: "+why)
	}
	return true
}

// relativeNames are the paths in the user's own git configuration that are
// relative to whatever repository git is in.
func relativeNames(files []UserGit) (names []string) {
	for _, file := range files {
		for _, e := range file.Entries {
			words := []string{e.Value}
			switch {
			case isHooksPath(e):
			case isCommand(e):
				words = strings.FieldsFunc(e.Value, endsWord)
			default:
				continue
			}
			for _, word := range words {
				word = path.Clean(word)
				local := filepath.IsLocal(word) && word != "."
				if local && word[0] != '~' && (isHooksPath(e) || strings.Contains(word, "/")) &&
					!slices.Contains(names, word) {
					names = append(names, word)
				}
			}
		}
	}
	return names
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
			o.alsoNamed(from, word)
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

// alsoNamed adds a path that git's configuration names to those the host
// executes, when it lies in the project; empty when it does not.
func (o *opener) alsoNamed(from, name string) (rel string) {
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

// unmade takes down what git's configurations name and nobody has made yet, but
// for what a placeholder keeps from being made.
func (o *opener) unmade() error {
	for _, rel := range slices.Concat(o.alsoExecuted, o.configured) {
		what, err := o.tree.Look(rel)
		held := slices.ContainsFunc(o.placeholders, func(p placeholder.Placeholder) bool {
			return p.Root == o.Path && p.Rel == rel && !p.Keep
		})
		if err == nil && what.Kind == beneath.Absent && !held {
			o.Scope.Unmade = append(o.Scope.Unmade, rel)
		}
	}
	slices.Sort(o.Scope.Unmade)
	o.Scope.Unmade = slices.Compact(o.Scope.Unmade)
	return nil
}
