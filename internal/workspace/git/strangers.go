package git

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag/pattern"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/hostrun"
)

// Action is what a repair does.
type Action int

const (
	Rename Action = iota // a name is given up
	Disarm               // a folder's HEAD is renamed, and that of each repository in it: git takes it for none then
	Unmake               // a .git without a HEAD is given up, and each repository in it disarmed
)

// Repair is one step that takes something out of git's reach. It needs no room on a disk.
type Repair struct {
	Do  Action
	Rel string // below the root
	Why string
}

// Comparison is the input of [Strangers].
type Comparison struct {
	Before, After Snapshot
	// Users reports whether a path is in a git folder of the user's, where no agent could write.
	Users func(at string) bool
	// Fetches reports whether a remote may be at a path on this machine: what the user fetches from there, the agent
	// reads the next time. nil: at none.
	Fetches func(at string) bool
	users   bool // they are the user's own, which are fetched from any place, and name submodules and a committer
}

// Reasons for repairs.
const (
	whyMade    = "a repository that was made inside: git would run what its settings and hooks name"
	whyUnmade  = "it is no repository yet: the next `git init` there would take its settings and hooks"
	whyChanged = "it was changed inside where git obeys it"
	whyLeads   = "it leads git elsewhere than it did"
	// ByYourConfiguration is why a new file goes that the user's own configuration names.
	ByYourConfiguration = "your git's configuration names it, and git would run or obey it"
)

// Strangers returns the repairs after which git obeys nothing that was made or changed between two looks.
func Strangers(c Comparison) (repairs []Repair) {
	known := map[string]bool{}
	add := func(r Repair) {
		if !known[r.Rel] {
			repairs = append(repairs, r)
		}
		known[r.Rel] = true
	}
	for i := range c.After.Folders {
		f := &c.After.Folders[i]
		why := c.folder(f)
		for in := f.In; in != "" && why != ""; in = f.In { // one repository with all that is in it
			f = &c.After.Folders[slices.IndexFunc(c.After.Folders, func(o Folder) bool { return o.Rel == in })]
		}
		switch {
		case why == "":
		case c.isUnmade(f):
			add(Repair{Unmake, f.Rel, whyUnmade})
		default:
			add(Repair{Disarm, f.Rel, why})
		}
	}
	for _, f := range c.After.Files {
		if c.leads(f) {
			add(Repair{Rename, f.Rel, whyLeads})
		}
	}
	for _, f := range c.After.Named {
		if fileIn(c.Before.Named, f.Path) == nil {
			add(Repair{Rename, f.Rel, ByYourConfiguration})
		}
	}
	return repairs
}

// folder says why a git folder may not stay one; empty: it may.
func (c Comparison) folder(f *Folder) string {
	was := c.Before.Folder(f.Path)
	if f.isPlain(c) && !slices.ContainsFunc(f.Entries, isLock) { // git would wait for whoever made the lock
		return ""
	}
	if was == nil {
		return whyMade
	}
	closed := slices.ContainsFunc(f.Closed, func(name string) bool { return !slices.Contains(was.Closed, name) })
	changed := func(e Entry) bool {
		top, _, _ := strings.Cut(e.Name, "/")
		others := f.Role == Bare && !isGits(top) // it may be a folder of anything
		return !others && !e.stays(was.Entry(e.Name))
	}
	if closed || f.odd || slices.ContainsFunc(f.Entries, changed) {
		return whyChanged
	}
	return ""
}

// isUnmade reports whether a .git is no repository, and was made or changed meanwhile: `git init` takes what is in it.
func (c Comparison) isUnmade(f *Folder) bool {
	was := c.Before.Folder(f.Path)
	isSign := func(e Entry) bool { return slices.Contains(signs, e.Name) && e.Kind != beneath.Dir }
	isNew := func(e Entry) bool { return was == nil || !e.same(was.Entry(e.Name)) }
	return path.Base(f.Rel) == ".git" && !slices.Contains(f.Closed, ".") && !slices.ContainsFunc(f.Entries, isSign) &&
		slices.ContainsFunc(f.Entries, isNew)
}

// What git keeps, and runs nothing by: commits, where branches are, what is staged.
var (
	keptFiles = strings.Fields(`HEAD ORIG_HEAD FETCH_HEAD COMMIT_EDITMSG description gc.log gc.pid index info/refs
		packed-refs shallow`)
	keptFolders = strings.Fields(`info lfs logs lost-found modules objects refs reftable worktrees`)
)

// stays reports whether a name in a git folder may stay as it is. What git keeps may change, but stays what it is on
// the disk: git would write through a link. What is in a folder has entries of its own, or see [Snapshot.Deepen].
func (e Entry) stays(was *Entry) bool {
	if e.same(was) || was != nil && was.Kind == beneath.Dir && e.Kind == beneath.Dir {
		return true
	}
	isFile := slices.Contains(keptFiles, e.Name) || strings.HasPrefix(e.Name, sharedIndex) ||
		path.Ext(e.Name) == ".lock"
	return (was == nil || was.Kind == e.Kind) &&
		(e.Kind == beneath.Regular && isFile || e.Kind == beneath.Dir && slices.Contains(keptFolders, e.Name))
}

// isPlain reports whether there is nothing in a git folder by which git runs or obeys anything: as in a clone that a
// package manager makes. It may borrow objects of the user's.
func (f *Folder) isPlain(c Comparison) bool {
	return !f.odd && len(f.Closed) == 0 && !slices.ContainsFunc(f.Entries, func(e Entry) bool {
		top, _, _ := strings.Cut(e.Name, "/")
		switch {
		case f.Role == Bare && !isGits(top), strings.HasSuffix(top, "."+Aside): // git looks for none
			return false
		case isSettings(e.Name, c) && e.Kind == beneath.Regular:
			settings, err := gitconfig.Parse([]byte(e.text))
			isOdd := f.odds(c, settings)
			return !e.read || err != nil || slices.ContainsFunc(settings, func(s gitconfig.Entry) bool {
				return isOdd(s) || e.Name != "config" && s.Top() != "core" // remotes in it are not told
			})
		case e.Name == "objects/info/alternates" && e.Kind == beneath.Regular:
			elsewhere := func(at string) bool { return at != "" && (path.Clean(at) != at || !c.Users(at)) }
			return !e.read || slices.ContainsFunc(strings.Split(e.text, "\n"), elsewhere)
		case e.Kind == beneath.Dir:
			return !slices.Contains(keptFolders, e.Name) && e.Name != "hooks" && e.Name != "branches"
		}
		return !e.stays(nil) && e.Name != "info/exclude" && !(c.users && e.Name == "info/sparse-checkout")
	})
}

// odds reports of each of a folder's settings whether git runs or obeys something by it.
func (f *Folder) odds(c Comparison, all []gitconfig.Entry) func(gitconfig.Entry) bool {
	return func(s gitconfig.Entry) bool {
		isPartial := (c.users || hostrun.IsFilled(f.Rel)) && slices.Contains(partial, s.Top()+"."+s.Name)
		return !c.isPlain(s) && !isPartial && !(c.users && (f.isOwnTree(s) || isMirrors(s, all))) || !isRemotes(s, all)
	}
}

// isSettings reports whether a file in a git folder has settings. In one of the user's, `git clone --sparse` makes a
// second such file.
func isSettings(name string, c Comparison) bool {
	return name == "config" || c.users && name == "config.worktree"
}

func isLock(e Entry) bool { return path.Ext(e.Name) == ".lock" }

// Users is what is known of a repository that is to be the user's own.
type Users struct {
	// Sees reports whether an agent may write at a path: git runs what is there when the user pushes to it.
	Sees func(at string) bool
	// IsHook reports whether a hook, by its path, is as the user's own template has it. nil: none is.
	IsHook func(root *beneath.Folder, rel string) bool
}

// IsPlain reports whether there is nothing in the git folder at a path, or in those in it, by which git runs or obeys
// anything of another one's, nor a file that has another name, by which it could be written later.
func IsPlain(root *beneath.Folder, rel string, of Users) bool {
	seen, c := of.look(root, rel)
	isNot := func(f Folder) bool {
		hasOther := func(e Entry) bool {
			what, err := root.Look(path.Join(f.Rel, e.Name))
			return err != nil || what.Kind == beneath.Regular && what.Names > 1
		}
		others := f
		others.Entries = slices.DeleteFunc(slices.Clone(f.Entries), func(e Entry) bool { return of.isHook(root, f, e) })
		return !others.isPlain(c) || slices.ContainsFunc(f.Entries, hasOther)
	}
	return len(seen.Folders) > 0 && !slices.ContainsFunc(seen.Folders, isNot)
}

// isHook reports whether a file in a git folder is a hook of the user's own template.
func (of Users) isHook(root *beneath.Folder, f Folder, e Entry) bool {
	return of.IsHook != nil && strings.HasPrefix(e.Name, "hooks/") && e.Kind == beneath.Regular &&
		of.IsHook(root, path.Join(f.Rel, e.Name))
}

// MakePlain takes the hooks out of a git folder, if one is not of the user's own template, and a configuration by which
// git runs something: that gets one without such settings. What it takes lies beside the folder then, by its name,
// which it returns.
func MakePlain(root *beneath.Folder, rel string, of Users) (taken []string, err error) {
	seen, c := of.look(root, rel)
	f := seen.Folder(root.Join(rel))
	if f == nil {
		return nil, nil
	}
	take := func(name string) error {
		taken = append(taken, name)
		return root.Rename(path.Join(rel, name), path.Join(path.Dir(rel), name))
	}
	isOther := func(e Entry) bool { return strings.HasPrefix(e.Name, "hooks/") && !of.isHook(root, *f, e) }
	if slices.ContainsFunc(f.Entries, isOther) {
		err = take("hooks")
	}
	settings := f.Entry("config").Settings()
	plain := slices.DeleteFunc(slices.Clone(settings), f.odds(c, settings))
	if len(plain) < len(settings) {
		const perm = 0o644
		err = cmp.Or(err, take("config"))
		err = cmp.Or(err, root.Create(path.Join(rel, "config"), gitconfig.Render(plain), perm))
	}
	return taken, err
}

// look looks at a repository that is to be the user's own.
func (of Users) look(root *beneath.Folder, rel string) (Snapshot, Comparison) {
	seen := Gather(root, Look{Own: []string{rel}, Judge: true})
	seen.Deepen(root, Snapshot{})
	users := func(at string) bool { return !of.Sees(at) } // as `git clone -s` borrows of
	fetches := func(at string) bool { return !of.Sees(at) || !of.Sees(at+"/.git") }
	return seen, Comparison{Users: users, Fetches: fetches, users: true}
}

// plain are the settings that git and package managers write in a clone.
var plain = strings.Fields(`core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase
	core.precomposeunicode core.symlinks extensions.objectformat
	remote.fetch remote.tagopt remote.gh-resolved
	branch.remote branch.merge branch.rebase`)

// usersOwn are further ones of the user's. git stages, pulls and pushes otherwise by them, and runs nothing.
var usersOwn = strings.Fields(`core.sparsecheckout core.sparsecheckoutcone extensions.worktreeconfig submodule.active
	core.abbrev core.autocrlf core.eol core.quotepath core.safecrlf fetch.prune pull.ff pull.rebase push.autosetupremote
	push.default branch.description merge.conflictstyle merge.ff rebase.autosquash rebase.autostash`)

// partial are those of one without all objects. `git status` fetches what it misses: no repository may lead there.
var partial = strings.Fields("extensions.partialclone remote.promisor remote.partialclonefilter")

// elsewhere matches the addresses of other machines: URLs, and host:path for ssh. name::address and unknown schemes are
// for programs of that name.
const elsewhere pattern.Expr = `^(?:(?:https|http|ssh|git)://[A-Za-z0-9]|` +
	`(?:[A-Za-z0-9][\w.-]*@)?[A-Za-z0-9][\w.-]*:/?[^:/])`

func (c Comparison) isPlain(s gitconfig.Entry) bool {
	name, at := s.Top()+"."+s.Name, strings.TrimPrefix(s.Value, "file://")
	// `git clone .` writes /p/. there; ".." behind a link leads elsewhere than it says.
	isUp := slices.Contains(strings.Split(at, "/"), "..")
	isHere := path.IsAbs(at) && (c.users || !isUp) && c.Fetches != nil && c.Fetches(path.Clean(at))
	switch {
	case name == "remote.url", name == "submodule.url" && c.users:
		return isHere || elsewhere.Matches(s.Value)
	case name == "extensions.refstorage":
		return s.Value == "files" || c.users && s.Value == "reftable" // whose HEAD is not judged
	}
	return slices.Contains(plain, name) || c.users && (s.Top() == "user" || slices.Contains(usersOwn, name))
}

// isRemotes reports whether a setting, if it says what a branch follows, names a remote of the settings, or another
// machine: git takes another name for a path.
func isRemotes(s gitconfig.Entry, settings []gitconfig.Entry) bool {
	isIts := func(o gitconfig.Entry) bool { return o.Key() == "remote."+s.Value+".url" }
	return s.Top()+"."+s.Name != "branch.remote" || s.Value == "." || elsewhere.Matches(s.Value) ||
		slices.ContainsFunc(settings, isIts)
}

// isMirrors reports whether a setting is that of a bare repository by `git clone --mirror`. In another one it would have
// a push remove branches there.
func isMirrors(s gitconfig.Entry, settings []gitconfig.Entry) bool {
	return s.Top()+"."+s.Name == "remote.mirror" && gitconfig.Last(settings, "core.bare") == "true" &&
		gitconfig.Last(settings, "remote."+s.Subsection+".fetch") == "+refs/*:refs/*"
}

// isOwnTree reports whether a setting of a submodule's repository names a working tree of the repository that it lies
// in.
func (f *Folder) isOwnTree(s gitconfig.Entry) bool {
	top, _, in := strings.Cut(f.Path, "/.git/modules/")
	at := path.Join(f.Path, s.Value)
	return in && s.Top() == "core" && s.Name == "worktree" && !path.IsAbs(s.Value) &&
		pathname.Below(at, top) && at != top && !pathname.Below(at, top+"/.git")
}

// leads reports whether a .git file or link leads git elsewhere than it did. A part of a repository of the user's may
// be new, as that of a worktree; and where the part itself says so its file is the user's git's, written anew.
func (c Comparison) leads(f File) bool {
	was := c.Before.file(f.Path)
	if was != nil && was.Kind == f.Kind && was.Stamp == f.Stamp && (was.Led || !f.Led) {
		return false
	}
	if f.Kind != beneath.Regular || !f.read {
		return true
	}
	to, ok := f.target()
	return !c.LeadsToPart(f.Path, f.text) && !(ok && f.back && c.Users(to))
}

// LeadsToPart reports whether a .git file with a text leads nowhere, or to a part of a repository of the user's that
// was not there before.
func (c Comparison) LeadsToPart(at, text string) bool {
	to, ok := File{Path: at, text: text}.target()
	isPart := strings.Contains(to, "/modules/") || strings.Contains(to, "/worktrees/")
	return ok && (to == "" || isPart && c.Users(to) && c.Before.Folder(to) == nil)
}
