package project

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/hostrun"
)

// view is what one look at a project found. It is complete before [view.protect] uses it.
type view struct {
	ground
	tree    *beneath.Folder // the project
	common  *beneath.Folder // the repository's common folder; nil: it lies in the project, or there is none
	scope   Scope
	seen    Seen
	before  git.Snapshot
	folders []gitFolder
	named   named    // by configurations of git, and by claudebox
	found   []string // what the host executes and is there, relative to the project
	hide    []string // what the profile's patterns with a slash match
	tracked Tracked  // what git's indexes hold, as far as that counts
	doubted []string // names in the index that count as untracked
}

// look walks the project, reads its git folders and indexes, and lists what is to be protected or hidden. Each step
// goes by what those before it found.
func (g ground) look(tree, common *beneath.Folder, l *layers) (*view, error) {
	v := &view{ground: g, tree: tree, common: common, scope: g.scope(common != nil)}
	var known *Seen
	if g.Known != nil {
		known = g.Known(v.scope)
	}
	v.seen = v.scope.walk(tree, known, walkLimit, 0)
	if v.seen.Cut {
		l.note(true, "the project has more than %d entries: "+
			"further repositories and secret files in it are neither protected nor hidden", walkLimit)
	}
	for _, rel := range v.seen.Closed {
		below{l, tree}.closed(rel)
	}
	var err error
	if v.before, v.folders, err = v.gather(l); err != nil {
		return nil, err
	}
	v.repo.Remotes, v.scope.Hash = v.ofConfig()
	if v.named, err = v.learn(l); err != nil {
		return nil, err
	}
	if v.found, v.hide, err = v.find(below{l, tree}); err != nil {
		return nil, err
	}
	v.scope.Places = v.places()
	v.scope.readIndexes(tree, &v.seen, known)
	v.doubted = v.uncounted()
	v.tracked = v.seen.Tracked.Without(v.doubted)
	return v, nil
}

// scope is what of the project is looked at, as far as it is known by now.
func (g ground) scope(outside bool) Scope {
	s := Scope{Build: g.Build, Path: g.path, Relative: relativeNames(g.UserGit)}
	for _, pattern := range g.Hide {
		if strings.Contains(pattern, "/") {
			s.HideAt = append(s.HideAt, pattern)
		} else {
			s.Hide = append(s.Hide, pattern)
		}
	}
	if g.repo.Dir == "" {
		return s
	}
	s.Index = g.repo.Dir
	if below := relative(g.repo.Worktree, g.path); below != "." {
		s.Strip = below + "/"
	}
	if outside {
		s.Common = g.repo.Common
	}
	return s
}

// gather looks at the git folders of the project, and of the repository that it
// lies in.
func (v *view) gather(l *layers) (all git.Snapshot, folders []gitFolder, err error) {
	if all, err = git.Gather(v.tree, v.scope.GitPlaces(v.seen)); err != nil {
		return all, nil, err
	}
	if at := v.repo.Common; at != "" && v.contains(at) && all.Folder(at) == nil {
		own, err := git.Gather(v.tree, git.Look{Own: []string{relative(v.path, at)}})
		if err != nil {
			return all, nil, err
		}
		all = all.And(own)
	}
	inside := v.gitFolders(below{l, v.tree}, all)
	if v.common != nil {
		theirs, err := git.Gather(v.common, git.Look{Own: []string{"."}})
		if err != nil {
			return all, nil, err
		}
		all, folders = all.And(theirs), v.gitFolders(below{l, v.common}, theirs)
	}
	return all, append(folders, inside...), nil
}

// find lists the existing files that host programs execute or obey, sorted; and those that the profile's hide globs
// match.
func (v *view) find(at below) (found, hide []string, err error) {
	globs, err := matches(v.tree, "protect", v.Protect)
	if err != nil {
		return nil, nil, err
	}
	if hide, err = matches(v.tree, "hide", v.scope.HideAt); err != nil {
		return nil, nil, err
	}
	names := slices.Concat(hostrun.Held(), v.named.executed, v.named.configured, globs)
	slices.Sort(names)
	for _, rel := range slices.Compact(names) {
		what, err := at.look(rel)
		if err != nil {
			return nil, nil, err
		}
		if what.Kind != beneath.Absent && what.Kind != beneath.Special {
			found = append(found, rel)
		}
	}
	return found, hide, nil
}

// matches lists what globs of the profile match.
func matches(tree *beneath.Folder, key string, globs []string) (all []string, err error) {
	for _, pattern := range globs {
		matching, err := tree.Glob(pattern)
		if err != nil {
			return nil, &diag.Error{
				Op: "look for " + pattern, Err: err, Remedy: "make the pattern in " + key + " narrower",
			}
		}
		all = append(all, matching...)
	}
	return all, nil
}

// places are the names in indexes of which it must be known whether they are
// tracked, beyond the built-in lists.
func (v *view) places() []string {
	list := slices.Concat(v.found, v.hide)
	for _, dotGit := range v.seen.Git {
		for _, rel := range v.found { // as its own index names it
			if below, ok := strings.CutPrefix(rel, path.Dir(dotGit)+"/"); ok {
				list = append(list, below)
			}
		}
	}
	return list
}

// uncounted are the names in the indexes that count as untracked, by what is
// remembered of each index: those that sessions added; those that sessions hid and
// that are tracked since, by whom nobody knows, as git takes names out of commits
// and other indexes, unless who added them has read the file; and those that a
// session may have added which still lives.
func (v *view) uncounted() (names []string) {
	if v.Memory == nil {
		return nil
	}
	for _, place := range v.seen.places {
		id := place.id()
		for _, name := range v.Memory.Pushed(id) {
			if rel, in := place.inProject(name); in {
				names = append(names, rel)
			}
		}
		for _, name := range v.Memory.Hidden(id) {
			if rel, in := place.inProject(name); in && v.seen.Has(rel) && !place.proves(v.tree, name) {
				names = append(names, rel)
			}
		}
	}
	for _, name := range v.seen.All() {
		if v.Memory.Doubted(v.tree.Join(name)) {
			names = append(names, name)
		}
	}
	return names
}

// protect says what is to be laid over what was seen. It looks into files, and at
// what links lead to; nothing of the view changes but what is left to be made.
func (v *view) protect(l *layers) (Project, error) {
	for n := range v.folders {
		if err := v.folders[n].protect(n >= repoLimit); err != nil {
			return Project{}, err
		}
	}
	at := below{l, v.tree}
	for i := range v.before.Files {
		if err := at.existing(v.before.Files[i].Rel, whyMoved); err != nil {
			return Project{}, err
		}
	}
	filled, err := v.lookFilled(at)
	if err != nil {
		return Project{}, err
	}
	h := hider{view: v, below: at}
	if err := h.all(); err != nil {
		return Project{}, err
	}
	h.sockets()
	reported, readOnly, err := v.executed(at)
	if err != nil {
		return Project{}, err
	}
	if err := v.otherNames(at); err != nil {
		return Project{}, err
	}
	v.scope.Unmade = v.unmade(l.standIns)
	mounts, hidden := l.sorted()
	return Project{
		Path: v.path, Dir: v.Dir, Root: v.root, Repo: v.repo, Mounts: mounts, Notes: l.notes,
		Reported: reported, Hidden: hidden, Stay: l.stay, ReadOnly: slices.Concat(l.copied, readOnly),
		Cut: v.seen.Cut, Tracked: v.tracked.All(), Scope: v.scope, Seen: v.seen, Filled: filled,
		Before: v.before, OpenConfig: v.WritableConfig, StandIns: l.standIns, show: v.Show,
	}, nil
}

// executed protects what the host executes. A tracked file stays writable and is reported: read-only it would stop
// `git switch` half-way. Files read as configuration are read-only even if tracked: git obeys them without anybody
// running them.
func (v *view) executed(at below) (reported, readOnly []string, err error) {
	for _, rel := range v.found {
		if !v.Strict && v.tracked.Has(rel) && !slices.Contains(v.named.configured, rel) {
			reported = append(reported, rel)
			continue
		}
		readOnly = append(readOnly, rel)
		if slices.ContainsFunc(v.doubted, func(name string) bool { return pathname.Below(name, rel) }) {
			at.note(false, "%s stays read-only: a session may have put it into git's index", rel)
		}
		if v.copyIncluded(at, rel) {
			continue
		}
		if err := at.existing(rel, "the host's tools execute it"); err != nil {
			return nil, nil, err
		}
	}
	return reported, readOnly, nil
}

// shown reports whether the profile lets a path in: it, or a folder above.
func (v *view) shown(rel string) bool { return Shown(v.Show, rel) }
