package project

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitconfig"
)

// commandVariables are git's variables that hold a command, by section and
// name; without a name it is any of the section's.
var commandVariables = strings.Fields(`core.fsmonitor core.editor core.pager core.sshcommand core.askpass core.gitproxy
	core.alternaterefscommand sequence.editor pager alias diff.external diff.command diff.textconv
	interactive.difffilter difftool.cmd mergetool.cmd merge.driver filter.clean filter.smudge filter.process
	credential.helper gpg.program trailer.command trailer.cmd submodule.update remote.uploadpack
	remote.receivepack uploadpack.packobjectshook`)

func isCommand(e gitconfig.Entry) bool {
	return slices.Contains(commandVariables, e.Top()+"."+e.Name) || slices.Contains(commandVariables, e.Top())
}

func isHooksPath(e gitconfig.Entry) bool { return e.Section == "core" && e.Name == "hookspath" }

// words are the parts of a shell command that may be paths.
func words(command string) []string {
	return strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;|&()<>=!$", r) })
}

// UserGit is a file of the user's own git configuration.
type UserGit struct {
	Dir     string // the folder that it lies in
	Entries []gitconfig.Entry
}

// relativeNames are the paths in the user's own git configuration that are
// relative to whatever repository git is in.
func relativeNames(files []UserGit) (names []string) {
	for _, file := range files {
		for _, e := range file.Entries {
			var named []string
			switch {
			case isHooksPath(e):
				named = []string{e.Value}
			case isCommand(e):
				onPath := func(word string) bool { return !strings.Contains(path.Clean(word), "/") }
				named = slices.DeleteFunc(words(e.Value), onPath)
			}
			for _, name := range named {
				name = path.Clean(name)
				if filepath.IsLocal(name) && name != "." && name[0] != '~' && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// named are the files that are executed or obeyed because something names them,
// relative to the project.
type named struct {
	executed   []string // by git
	included   []string // by git, in a configuration
	configured []string // what of all is read as configuration: protected if tracked, too
}

// configuration is one that git obeys in the project.
type configuration struct {
	entries []gitconfig.Entry
	dir     string // of its file
	tree    string // where git starts programs
	users   bool   // it is the user's own, for every repository
}

// ofConfig is what the configuration of the project's own repository says of it: its
// remotes, and the length of its object names.
func (v *view) ofConfig() (remotes []string, hash int) {
	for _, g := range v.folders {
		if !g.own {
			continue
		}
		main := g.settings("config")
		hash = hashSize(main)
		for _, e := range main {
			if e.Section == "remote" && e.Name == "url" {
				remotes = append(remotes, e.Value)
			}
		}
	}
	return remotes, hash
}

// learn takes down what all configurations of git name, and what claudebox takes
// orders from.
func (v *view) learn(l *layers) (named, error) {
	n := namer{view: v, layers: l}
	trees := []string{v.path}
	if v.repo.Worktree != "" {
		trees[0] = v.repo.Worktree
	}
	for _, g := range v.folders {
		if !g.guarded {
			continue
		}
		n.learn(configuration{g.settings("config"), g.Path, g.tree, false})
		n.learn(configuration{g.settings("config.worktree"), g.Path, g.tree, false})
	}
	for _, place := range v.seen.Git {
		if place != ".git" {
			trees = append(trees, v.tree.Join(path.Dir(place)))
		}
	}
	for _, file := range v.UserGit {
		hooks := slices.DeleteFunc(slices.Clone(file.Entries), func(e gitconfig.Entry) bool {
			return !isHooksPath(e) || filepath.IsAbs(e.Value)
		})
		for i, tree := range trees {
			if i == 0 {
				n.learn(configuration{file.Entries, file.Dir, tree, true})
			} else {
				n.learn(configuration{hooks, file.Dir, tree, false})
			}
		}
	}
	for _, file := range v.Orders {
		rel, err := v.order(file)
		if err != nil {
			return named{}, err
		}
		if rel != "" {
			n.named.configured = append(n.named.configured, rel)
		}
	}
	return n.named, nil
}

// namer takes down what configurations of git name.
type namer struct {
	*view
	*layers
	named named
}

func (n *namer) learn(c configuration) {
	for _, e := range c.entries {
		switch {
		case isHooksPath(e):
			n.hold(c.tree, e.Value, true, whyHooks)
			if c.users && !filepath.IsAbs(e.Value) && e.Value != "" && e.Value[0] != '~' {
				n.note(true, "your git runs hooks from %s of any repository (core.hooksPath): "+
					"look into one that was made inside before you use git there", e.Value)
			}
		case gitconfig.IsInclude(e):
			rel := n.hold(c.dir, e.Value, false, whyConfig)
			if rel == "" || slices.Contains(n.named.included, rel) {
				continue
			}
			n.named.included, n.named.configured = append(n.named.included, rel), append(n.named.configured, rel)
			if content, err := n.tree.Read(rel, configLimit); err == nil && !c.users {
				entries, _ := gitconfig.Parse(content)
				n.learn(configuration{entries, path.Dir(n.tree.Join(rel)), c.tree, false})
			}
		case isCommand(e):
			for _, word := range words(e.Value) {
				if at := gitconfig.Path(c.tree, word, n.Home); strings.Contains(word, "/") && !n.isGitsOwn(at) {
					n.executes(at)
				}
			}
		}
	}
}

// executes adds a path to those the host executes, when it lies in the project;
// empty when it does not.
func (n *namer) executes(at string) (rel string) {
	if !n.contains(at) || at == n.path || at == n.path+"/.git" || pathname.Below(at, n.path+"/.git/hooks") {
		return ""
	}
	rel = relative(n.path, at)
	n.named.executed = append(n.named.executed, rel)
	return rel
}

// isGitsOwn tells a file by which git works, as its index, from a program that
// lies beside it.
func (n *namer) isGitsOwn(at string) bool {
	if !n.contains(at) || !slices.Contains(strings.Split(at, "/"), ".git") {
		return false
	}
	what, err := n.tree.Look(relative(n.path, at))
	return err != nil || what.Kind != beneath.Regular || what.Perm&0o111 == 0
}

// hold holds a place that a configuration names, in the project or in the common
// folder outside of it: it is kept empty when nothing is there, as the host's git
// would obey it at once. Where even its folder is missing, it can only be told. It
// gives where the place lies in the project.
func (n *namer) hold(from, name string, dir bool, why string) (rel string) {
	place, b := gitconfig.Path(from, name, n.Home), below{n.layers, n.tree}
	outside := n.common != nil && place != n.repo.Common && pathname.Below(place, n.repo.Common)
	at := ""
	if outside {
		b.at, at = n.common, relative(n.repo.Common, place)
	} else if rel = n.executes(place); rel == "" {
		return ""
	} else {
		at = rel
	}
	what, err := b.at.Look(at)
	above, fault := b.at.Look(path.Dir(at))
	switch absent := err == nil && what.Kind == beneath.Absent; {
	case absent && (fault != nil || above.Kind != beneath.Dir):
		n.note(true, "%s is not there, and the agent can make it: %s", place, why)
	case absent:
		b.standIn(StandIn{Rel: at, Dir: dir}, why)
	case !outside:
		n.standIns = append(n.standIns, StandIn{Root: n.path, Rel: at, Keep: true})
	case err != nil:
		n.note(true, "%s cannot be protected: %s", place, why)
	default:
		b.keep(at, what.Kind, why)
	}
	return rel
}

// copyIncluded covers what git includes in a configuration, and no index holds, by
// a copy without secrets, and reports whether it has.
func (v *view) copyIncluded(at below, rel string) bool {
	what, err := v.tree.Look(rel)
	if err != nil || what.Kind != beneath.Regular || !slices.Contains(v.named.included, rel) || v.tracked.Has(rel) {
		return false
	}
	content, err := v.tree.Read(rel, configLimit)
	if err == nil {
		at.cover(rel, Mount{Mode: Made, Content: gitconfig.Sanitise(content), Why: whyConfig})
	}
	return err == nil
}

// unmade is what is named and nobody has made yet, but for what a stand-in
// keeps from being made.
func (v *view) unmade(held []StandIn) []string {
	list := slices.DeleteFunc(slices.Concat(v.named.executed, v.named.configured), func(rel string) bool {
		what, err := v.tree.Look(rel)
		return err != nil || what.Kind != beneath.Absent || slices.ContainsFunc(held, func(p StandIn) bool {
			return p.Root == v.path && p.Rel == rel && !p.Keep
		})
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// order says where in the project a file lies that claudebox itself takes orders
// from; empty: elsewhere. One that is reached through a link in the project cannot
// be protected: the agent would exchange the link.
func (g ground) order(file string) (rel string, link error) {
	real, err := beneath.Canonical(file)
	direct := err == nil && real == path.Clean(file) // no link on the way
	if err != nil {
		real = canonicalOr(file)
	}
	if g.contains(real) {
		rel = relative(g.path, real)
	}
	if direct {
		return rel, nil
	}
	_, _ = beneath.Follow(beneath.OnDisk{}, "/", path.Clean(file), func(at string, info fs.FileInfo, _ bool) error {
		if info.Mode()&fs.ModeSymlink != 0 && at != g.path && g.contains(at) {
			link = diag.Errorf("take orders from "+file, "name the file itself: "+real,
				"%s is a link in the project, which the agent could lead elsewhere", at)
		}
		return link
	})
	if link != nil {
		return "", link
	}
	return rel, nil
}
