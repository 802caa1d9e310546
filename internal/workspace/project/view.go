package project

import (
	"maps"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/survey"
)

// view is what one look at a project found. [location.look] fills it, each field by one function. Only the layers
// change after that.
type view struct {
	location
	*layers
	tree    below // the project
	common  below // the repository's common folder; without one, it lies in the project, or there is none
	scope   Scope
	seen    Seen
	before  git.Snapshot
	judged  git.Snapshot // before, without what an agent that lives may have made
	folders []gitFolder
	filled  Filled
	within  []gitFolder    // in the folders that tools fill
	repos   git.Snapshot   // of these, with .git files
	named   map[string]use // by configurations of git, by claudebox, and by the profile; relative to the project
	found   []place        // what the host executes, as far as it exists
	hide    []string       // what the profile's patterns match, and what looks secret
	tracked Tracked        // what git's indexes hold, as far as that counts

	stayHidden, wereHidden []string // by earlier sessions, see [Memory]
}

// look walks the project, reads its git folders and indexes, and lists what is to be protected or hidden. Each step
// uses what those before it found.
func (loc location) look(tree, common *beneath.Folder) (v *view, err error) {
	l := &layers{notes: loc.told, project: loc.path, own: loc.Own, mounts: map[string]Mount{}}
	if loc.dotGit != "" {
		l.mounts[loc.dotGit] = Mount{Path: loc.dotGit, Root: path.Dir(loc.dotGit), Mode: ReadOnly, Why: whyMoved}
	}
	v = &view{
		location: loc, layers: l, tree: below{l, tree}, common: below{l, common}, scope: loc.scope(),
	}
	known := loc.Memory.Known(v.scope)
	v.scope.Entered, v.seen = v.scope.walkAll(tree, known, loc.Memory.Entered(loc.path))
	if v.seen.Cut {
		l.note(true, "the project has more than %d entries: "+
			"further repositories and secret files in it are neither protected nor hidden", walkLimit)
	}
	for _, rel := range v.seen.Closed {
		v.tree.closed(rel)
	}
	var led []survey.File
	v.scope.Led, led = v.lookLed()
	v.before, v.folders = v.gather()
	v.judged = loc.Memory.Inherited(v.before)
	v.repo.Remotes, v.scope.Hash = ofConfig(v.folders)
	v.filled, v.repos = v.lookFilled()
	v.within = v.gitFolders(v.tree, v.repos)
	globber := beneath.NewGlobber(tree)
	names, err := v.learn(globber)
	if err != nil {
		return nil, err
	}
	v.named, v.scope.InEach = names.named, names.inEach
	asked, err := v.matching(globber, "hide", v.Hide)
	if err != nil {
		return nil, err
	}
	if v.found, err = v.existing(); err != nil {
		return nil, err
	}
	v.scope.Places = v.places(asked)
	v.scope.readIndexes(tree, &v.seen, known)
	v.stayHidden, v.wereHidden = loc.Memory.StillHidden(loc.path)
	v.tracked = v.seen.Tracked.Without(v.uncounted())
	v.markFiles()
	v.hide = slices.Concat(asked, names.secret, v.secrets(led))
	return v, nil
}

// scope says what of the project is to be looked at, as far as it is known before the walk.
func (loc location) scope() Scope {
	s := Scope{
		Build: loc.Build, Path: loc.path, Hide: loc.Hide, Protect: loc.Protect, Relative: relativeNames(loc.UserGit),
	}
	if loc.repo.Dir == "" {
		return s
	}
	if loc.repo.Dir != loc.repo.Worktree { // else it is bare: nothing is tracked, whatever a file named index says
		s.Index = loc.repo.Dir
	}
	if below := relative(loc.repo.Worktree, loc.path); below != "." {
		s.Strip = below + "/"
	}
	if loc.outside() {
		s.Common = loc.repo.Common
	}
	return s
}

// gather looks at the git folders of the project, and of the repository that it lies in.
func (v *view) gather() (all git.Snapshot, folders []gitFolder) {
	look := v.scope.GitPlaces(v.seen)
	if at := v.repo.Common; at != "" && v.contains(at) {
		look.Own = []string{relative(v.path, at)}
	}
	all = git.Gather(v.tree.Folder, look)
	inside := v.gitFolders(v.tree, all)
	if v.common.Folder != nil {
		theirs := git.Gather(v.common.Folder, git.Look{Own: []string{"."}})
		all, folders = all.And(theirs), v.gitFolders(v.common, theirs)
	}
	return all, append(folders, inside...)
}

// place is a path at which something exists.
type place struct {
	rel  string // to the project
	kind beneath.Kind
}

// existing lists the existing files that host programs execute or obey, and those that the profile protects, sorted.
func (v *view) existing() (found []place, err error) {
	names := slices.Concat(hostrun.Held(), slices.Collect(maps.Keys(v.named)))
	for _, file := range v.seen.Files {
		if hostrun.OfRepository(file.Rel) {
			names = append(names, file.Rel)
		}
	}
	slices.Sort(names)
	for _, rel := range slices.Compact(names) {
		what, err := v.tree.look(rel)
		if err != nil {
			return nil, err
		}
		if what.Kind != beneath.Absent && what.Kind != beneath.Special {
			found = append(found, place{rel, what.Kind})
		}
	}
	return found, nil
}

// places returns the names in indexes of which it must be known whether they are tracked, beyond the built-in lists.
func (v *view) places(asked []string) []string {
	list := slices.Clone(asked)
	for _, p := range v.found {
		list = append(list, p.rel)
		for _, dotGit := range v.seen.Git { // as its own index names it
			if below, ok := strings.CutPrefix(p.rel, path.Dir(dotGit)+"/"); ok {
				list = append(list, below)
			}
		}
	}
	return list
}

// uncounted returns the names in the indexes that count as untracked: those of files that were hidden from sessions,
// unless an index has the very content. git takes names out of commits, which an agent can make.
func (v *view) uncounted() (names []string) {
	for _, rel := range v.wereHidden {
		if v.seen.Has(rel) && !v.indexed(rel) {
			names = append(names, rel)
		}
	}
	return names
}

// indexed reports whether an index has a file, and with its very content: who added that has read the file.
func (v *view) indexed(rel string) bool {
	return slices.ContainsFunc(v.seen.places, func(p indexPlace) bool { return p.proves(v.tree.Folder, rel) })
}

// protect decides what is laid over what was seen. It still looks at where things lead: behind links, at who listens to
// a socket, for a file's other names, into included configurations and folders that tools fill.
func (v *view) protect() (Project, error) {
	if err := v.protectGit(); err != nil {
		return Project{}, err
	}
	for _, f := range v.before.Files {
		v.tree.makeReadOnly(f.Rel, f.Kind, whyMoved)
	}
	for _, g := range v.within {
		g.secrets()
	}
	v.ownSubmodules()
	if err := v.hideAll(); err != nil {
		return Project{}, err
	}
	v.hideSockets()
	reported, readOnly := v.executed()
	if err := v.otherNames(); err != nil {
		return Project{}, err
	}
	scope := v.scope
	scope.Unmade = v.unmade()
	mounts, hidden := v.sorted()
	return Project{
		Path: v.path, Dir: v.Dir, InstanceRoot: v.root, Repo: v.repo, Mounts: mounts, Places: v.inner, Notes: v.notes,
		Reported: reported, Hidden: hidden, Stay: v.stay, ReadOnly: slices.Concat(v.copied, readOnly),
		Cut: v.seen.Cut, Tracked: v.tracked.All(), Scope: scope, Seen: v.seen, Filled: v.filled,
		Before: v.judged.And(v.repos), Replaced: v.instead, Away: v.away, StandIns: v.entering(), show: v.Show,
	}, nil
}

// protectGit protects the git folders.
func (v *view) protectGit() error {
	n, wholly, one := 0, 0, ""
	var files []string
	for _, g := range v.folders {
		tooMany := n >= repoLimit && !g.file
		if err := g.protect(tooMany); err != nil {
			return err
		}
		switch {
		case g.file && g.In == "" && v.mounts[g.Path].Mode == ReadOnly:
			files = append(files, g.Rel)
		case tooMany:
			wholly, one = wholly+1, g.Path
		}
		if !g.file {
			n++
		}
	}
	if wholly > 0 {
		v.note(true, "there are more than %d git folders: %d of them are read-only inside as a whole, %s among them",
			repoLimit, wholly, one)
	}
	if len(files) > 0 {
		const most = 3
		v.note(false, "%s: read-only inside, as your git would obey what is written there",
			said(diag.Some(files, most)))
	}
	return nil
}

// executed protects what the host executes. A tracked file stays writable and is reported: read-only it would stop
// `git switch` half-way. Read-only even if tracked are files that the profile protects, as the user named them, and
// those read as configuration: git obeys them without anybody running them.
func (v *view) executed() (reported, readOnly []string) {
	for _, p := range v.found {
		rel := p.rel
		writable := !v.Strict && v.tracked.Has(rel) && v.named[rel]&(configured|protected) == 0
		if writable || v.named[rel] != 0 && p.kind == beneath.Link { // nothing holds a link
			reported = append(reported, rel)
		}
		if writable {
			continue
		}
		readOnly = append(readOnly, rel)
		why := "the host's tools execute it"
		if v.named[rel]&protected != 0 {
			why = "the profile's `protect` names it"
		}
		if !v.copyIncluded(p) {
			v.tree.makeReadOnly(rel, p.kind, why)
		}
	}
	return reported, readOnly
}

// shown reports whether the profile lets a path in: it, or a folder above.
func (loc location) shown(rel string) bool { return Matches(loc.Show, rel, true) }
