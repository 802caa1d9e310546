package project

import (
	"cmp"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/gitconfig"
)

// commandVariables are git's variables that hold a command, by section and name. A section without a name stands for
// all its variables. What stands in them is protected before it is there.
var commandVariables = strings.Fields(`core.fsmonitor core.editor core.pager core.sshcommand core.askpass core.gitproxy
	core.alternaterefscommand sequence.editor pager alias diff.external diff.command diff.textconv
	interactive.difffilter difftool.cmd mergetool.cmd merge.driver filter.clean filter.smudge filter.process
	credential.helper gpg.program trailer.command trailer.cmd submodule.update remote.uploadpack
	remote.receivepack uploadpack.packobjectshook hook.command gc.recentobjectshook gpg.defaultkeycommand
	tar.command mergetool.path difftool.path man.cmd man.path browser.cmd browser.path guitool.cmd
	sendemail.tocmd sendemail.cccmd sendemail.headercmd sendemail.sendmailcmd sendemail.smtpserver imap.tunnel
	lfs.path lfs.clean lfs.smudge`)

// dataVariables are git's variables that name a file which is only read. A file of the project that any other variable
// names may be one that git runs: other programs have variables of their own there.
var dataVariables = strings.Fields(`commit.template blame.ignorerevsfile mailmap.file gpg.allowedsignersfile
	gpg.revocationfile fsck.skiplist user.name user.email remote.url remote.pushurl branch.description`)

// obeyedFiles are git's variables that name what git obeys: filters, hooks of new repositories, what it ignores.
var obeyedFiles = []string{"core.attributesfile", "init.templatedir", "core.excludesfile"}

func isCommand(e gitconfig.Entry) bool {
	return slices.Contains(commandVariables, e.Top()+"."+e.Name) || slices.Contains(commandVariables, e.Top())
}

func isHooksPath(e gitconfig.Entry) bool { return e.Section == "core" && e.Name == "hookspath" }

// word is a part of a shell command that may be a path.
type word struct {
	text  string
	named bool // it is one, also if nothing is there: not a program of PATH, nor an ordinary argument
}

// words are the parts of a shell command that may be paths, also those that follow the letter of an option. What has no
// slash is one if it looks like a file's name, or is what an interpreter is to run.
func words(command string) (list []word) {
	split := func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;|&()<>=!$", r) }
	run := false
	for n, text := range strings.FieldsFunc(command, split) {
		option, slash := text[0] == '-', strings.Contains(path.Clean(text), "/")
		list = append(list, word{text, slash || n > 0 && !option && (run || strings.Contains(text[1:], "."))})
		if len(text) > 2 && option && text[1] != '-' {
			list = append(list, word{text[2:], strings.Contains(path.Clean(text[2:]), "/")})
		}
		run = option && run && !strings.HasSuffix(text, "c") || runsFile(path.Base(text))
	}
	return list
}

// runsFile reports whether a program of this name runs the file which is its first argument.
func runsFile(name string) bool {
	version, python := strings.CutPrefix(name, "python")
	return python && strings.Trim(version, "0123456789.") == "" ||
		slices.Contains(strings.Fields(". source sh bash dash zsh ksh ash fish perl ruby node php lua"), name)
}

// UserGit is a file of the user's own git configuration.
type UserGit struct {
	Dir     string // the folder that it lies in
	Entries []gitconfig.Entry
}

// relativeNames are the paths in the user's own git configuration that are relative to whatever repository git is in.
func relativeNames(files []UserGit) (names []string) {
	for _, file := range files {
		for _, e := range file.Entries {
			var named []word
			switch {
			case isHooksPath(e):
				named = []word{{e.Value, true}}
			case isCommand(e):
				named = words(e.Value)
			}
			for _, w := range named {
				name := path.Clean(w.text)
				if w.named && filepath.IsLocal(name) && name != "." && name[0] != '~' && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// use says what uses a file that a configuration names, and how; or that the profile names it.
type use int

const (
	executed   use = 1 << iota // by git
	configured                 // it is read as configuration: protected if tracked, too
	included                   // by git, in a configuration
	protected                  // by the profile
)

// configuration is one that git obeys in the project.
type configuration struct {
	entries []gitconfig.Entry
	dir     string // of its file
	tree    string // where git starts programs
	users   bool   // it is the user's own, for every repository
}

// ofConfig returns what the configuration of the project's own repository says: its remotes, and the length of its
// object names.
func ofConfig(folders []gitFolder) (remotes []string, hash int) {
	for _, g := range folders {
		if !g.own {
			continue
		}
		main := g.Entry("config").Settings()
		hash = git.HashSize(main)
		for _, e := range main {
			if e.Section == "remote" && e.Name == "url" {
				remotes = append(remotes, e.Value)
			}
		}
	}
	return remotes, hash
}

// names are the places of the project that are executed, or obeyed as configuration.
type names struct {
	named  map[string]use // relative to the project
	inEach []string       // see [Scope]
	secret []string       // files that are secrets of the home by other names
}

// learner goes from one configuration to the next, and gathers what they name.
type learner struct {
	location
	*layers
	tree below // the project
	names
	learnt map[[2]string]bool // files of configuration, each with a working tree for which it was read
}

// learn returns what all configurations of git name, the profiles and plans that claudebox obeys, what the home leads
// to, and what the profile protects.
func (v *view) learn(globber *beneath.Globber) (names, error) {
	l := &learner{
		location: v.location, layers: v.layers, tree: v.tree,
		names: names{named: map[string]use{}}, learnt: map[[2]string]bool{},
	}
	for _, g := range slices.Concat(v.folders, v.within) {
		l.learnIn(g.tree, g.Path)
	}
	for _, f := range slices.Concat(v.before.Files, v.repos.Files) {
		l.learnDotGit(f.Path)
	}
	l.learnAbove()
	for _, file := range v.UserGit {
		l.learnFrom(configuration{file.Entries, file.Dir, cmp.Or(v.repo.Worktree, v.path), true})
		hooks := slices.DeleteFunc(slices.Clone(file.Entries), func(e gitconfig.Entry) bool {
			return !isHooksPath(e) || filepath.IsAbs(e.Value)
		})
		for _, place := range v.seen.Git {
			if place != ".git" {
				l.learnFrom(configuration{hooks, file.Dir, v.tree.Join(path.Dir(place)), false})
			}
		}
	}
	for _, file := range v.OwnFiles {
		rel, err := v.ownFile(file)
		if err != nil {
			return names{}, err
		}
		if rel != "" {
			l.named[rel] |= configured
		}
	}
	if err := l.learnHome(); err != nil {
		return names{}, err
	}
	globs, err := v.matching(globber, "protect", v.Protect)
	for _, rel := range globs {
		l.named[rel] |= protected
	}
	return l.names, err
}

// learnIn notes what a git obeys that is started in a working tree: the configurations of its git folder and of the
// main one, and what their hooks lead to that are links. Both may lie anywhere: they are only read.
func (l *learner) learnIn(tree, dir string) {
	common := dir
	if text, err := beneath.ReadIn(dir, "commondir", configLimit); err == nil {
		if _, common, err = git.Resolve(dir, string(text)); err != nil {
			return
		}
	}
	l.learnFile(common+"/config", tree)
	l.learnFile(dir+"/config.worktree", tree)
	hooks := common + "/hooks"
	if beneath.LeadsOrClean(hooks) != hooks {
		l.executes(tree, hooks)
	}
	l.learnHooks(tree, hooks)
	l.learnHooks(tree, common+"/info")
}

// learnDotGit does the same for what is called .git, wherever it leads.
func (l *learner) learnDotGit(at string) {
	real := beneath.LeadsOrClean(at)
	base, err := beneath.Open(path.Dir(real))
	if err != nil {
		return
	}
	defer base.Close()
	if what, err := base.Look(path.Base(real)); err == nil && what.Kind == beneath.Dir {
		l.learnIn(path.Dir(at), real)
	} else if _, dir, err := git.ReadFile(base, path.Base(real)); err == nil {
		l.learnIn(path.Dir(at), dir)
	}
}

// learnAbove does the same for repositories above the project, or above a folder given beside it: what they name here
// is run by git there.
func (l *learner) learnAbove() {
	for dir := path.Dir(l.path); ; dir = path.Dir(dir) {
		worktree, bare := git.Discover(dir, l.Home)
		switch {
		case worktree == "":
			return
		case bare:
			l.learnIn(worktree, worktree)
		default:
			l.learnDotGit(worktree + "/.git")
		}
		dir = worktree
	}
}

// learnHooks notes where the links in a folder lead: of hooks, or of what else git obeys there.
func (l *learner) learnHooks(tree, dir string) {
	hooks, err := beneath.Open(beneath.LeadsOrClean(dir))
	if err != nil {
		return
	}
	defer hooks.Close()
	names, _ := hooks.Names(".", HideLimit)
	for _, name := range names {
		if text, err := hooks.Readlink(name); err == nil {
			l.executes(tree, gitconfig.Path(hooks.Path(), text, ""))
		}
	}
}

// learnFile notes what a file of configuration names, for a git that starts programs in a working tree; each file once,
// because they may include each other.
func (l *learner) learnFile(at, tree string) {
	const most = 10_000
	real, as := beneath.LeadsOrClean(at), [2]string{at, tree}
	if l.learnt[as] || len(l.learnt) > most {
		return
	}
	l.learnt[as] = true
	if content, err := beneath.ReadIn(path.Dir(real), path.Base(real), configLimit); err == nil {
		entries, _ := gitconfig.Parse(content)
		l.learnFrom(configuration{entries, path.Dir(at), tree, false})
	}
}

// learnFrom notes what one configuration names.
func (l *learner) learnFrom(c configuration) {
	for _, e := range c.entries {
		switch {
		case slices.Contains(obeyedFiles, e.Key()):
			l.hold(c.tree, e.Value, e.Section == "init", whyConfig)
		case e.Key() == "core.worktree": // of a git folder elsewhere; a submodule's is known
			l.learnFile(c.dir+"/config", gitconfig.Path(c.dir, e.Value, ""))
		case isHooksPath(e):
			l.hold(c.tree, e.Value, true, whyHooks)
			l.learnHooks(c.tree, gitconfig.Path(c.tree, e.Value, l.Home))
			if c.users && !filepath.IsAbs(e.Value) && e.Value != "" && e.Value[0] != '~' {
				l.note(true, "your git runs hooks from %s of any repository (core.hooksPath): "+
					"look into one that was made inside before you use git there", e.Value)
			}
		case gitconfig.IsInclude(e):
			if rel := l.hold(c.dir, e.Value, false, whyConfig); rel != "" {
				l.named[rel] |= configured | included // see [view.copyIncluded]
			}
			if !c.users { // of those, all that are included are known
				l.learnFile(gitconfig.Path(c.dir, e.Value, l.Home), c.tree)
			}
		case !slices.Contains(dataVariables, e.Top()+"."+e.Name):
			l.learnCommand(c, e)
		}
	}
}

// learnCommand notes the files that a command names. Of a setting that is no command of git's own it notes those that
// are there.
func (l *learner) learnCommand(c configuration, e gitconfig.Entry) {
	for n, w := range words(e.Value) {
		places := []string{gitconfig.Path(c.tree, w.text, l.Home)}
		if path.IsAbs(w.text) && !beneath.Exists(w.text) { // "$(git rev-parse --show-toplevel)/x", or not made yet
			places = append(places, path.Join(c.tree, w.text))
		}
		for _, at := range places {
			what, _ := l.tree.Look(relative(l.path, at)) // a word of a shell, perhaps
			is := what.Kind == beneath.Regular
			if (w.named || n > 0) && (is || w.named && isCommand(e)) && !l.isGitsOwn(at) {
				l.executes(c.tree, at)
			}
		}
	}
}

// executes notes a path that the host executes, and the links on the way to it. It returns where the path leads at
// last; empty if that is outside of the project. A path in a worktree is also noted for all other worktrees, because
// git uses it there, too.
func (l *learner) executes(tree, at string) (rel string) {
	add := func(place string) string {
		if !l.contains(place) || place == l.path || place == l.path+"/.git" ||
			pathname.Below(place, l.path+"/.git/hooks") {
			return ""
		}
		rel := relative(l.path, place)
		l.named[rel] |= executed
		return rel
	}
	_, _ = beneath.Follow(beneath.OnDisk{}, "/", at, func(name string, info fs.FileInfo, _ bool) error {
		if info.Mode()&fs.ModeSymlink != 0 {
			add(name)
		}
		return nil
	})
	if rel = add(beneath.LeadsOrClean(at)); rel == "" {
		return ""
	}
	if name := relative(tree, at); filepath.IsLocal(name) && name != "." && !slices.Contains(l.inEach, name) {
		l.inEach = append(l.inEach, name)
	}
	return rel
}

// isGitsOwn reports whether a path in a git folder is no program: a file by which git works, such as its index.
func (l *learner) isGitsOwn(at string) bool {
	if !l.contains(at) || !slices.Contains(strings.Split(at, "/"), ".git") {
		return false
	}
	what, err := l.tree.Look(relative(l.path, at))
	return err != nil || what.Kind != beneath.Regular || what.Perm&0o111 == 0
}

// hold protects a place in the project that a configuration names. If nothing is there a stand-in is made, because the
// host's git would at once obey what the agent makes there; if its folder is missing as well, only a note can be made.
// It returns the path in the project; empty: it lies elsewhere.
func (l *learner) hold(from, name string, dir bool, why string) (rel string) {
	place := gitconfig.Path(from, name, l.Home)
	if rel = l.executes(from, place); rel == "" {
		return ""
	}
	what, err := l.tree.Look(rel)
	above, fault := l.tree.Look(path.Dir(rel))
	switch absent := err == nil && what.Kind == beneath.Absent; {
	case absent && (fault != nil || above.Kind != beneath.Dir):
		l.note(true, "%s is not there, and the agent can make it: %s", place, said(why))
	case absent:
		l.tree.standIn(StandIn{Rel: rel, Dir: dir}, why)
	default:
		l.standIns = append(l.standIns, StandIn{Root: l.path, Rel: rel, Keep: true})
	}
	return rel
}

// copyIncluded covers a file that git includes in a configuration by a copy without secrets, if it is not tracked. It
// reports whether it did so.
func (v *view) copyIncluded(p place) bool {
	if p.kind != beneath.Regular || v.named[p.rel]&included == 0 || v.tracked.Has(p.rel) {
		return false
	}
	content, err := v.tree.Read(p.rel, configLimit)
	if err == nil {
		v.tree.cover(p.rel, Mount{Mode: Made, Content: gitconfig.Sanitise(content), Why: whyConfig})
	}
	return err == nil
}

// unmade returns the paths that are named and do not exist yet, without those that a stand-in keeps free.
func (v *view) unmade() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v.named)), func(rel string) bool {
		what, err := v.tree.Look(rel)
		return err != nil || what.Kind != beneath.Absent || slices.ContainsFunc(v.standIns, func(p StandIn) bool {
			return p.Root == v.path && p.Rel == rel && !p.Keep
		})
	})
}

// ownFile returns where in the project a profile or plan lies that claudebox obeys; empty: elsewhere. It fails
// if the file is reached through a link in the project, which cannot be protected: the agent would exchange the link.
func (loc location) ownFile(file string) (rel string, link error) {
	real, err := beneath.Canonical(file)
	direct := err == nil && real == path.Clean(file) // no link on the way
	if err != nil {
		real = beneath.LeadsOrClean(file)
	}
	if loc.contains(real) {
		rel = relative(loc.path, real)
	}
	if direct {
		return rel, nil
	}
	_, _ = beneath.Follow(beneath.OnDisk{}, "/", path.Clean(file), func(at string, info fs.FileInfo, _ bool) error {
		if info.Mode()&fs.ModeSymlink != 0 && at != loc.path && loc.contains(at) {
			link = diag.Errorf("obey "+diag.Name(file), "name the file itself: "+diag.Name(real),
				"%s is a link in the project, which the agent could lead elsewhere", diag.Name(at))
		}
		return link
	})
	if link != nil {
		return "", link
	}
	return rel, nil
}
