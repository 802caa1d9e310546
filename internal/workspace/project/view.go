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

// view is what was seen of a project. It is whole before anything is covered.
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
	pushed  []string // names in the index that count as untracked
}

// look looks at all that matters.
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
	if err := v.gather(l); err != nil {
		return nil, err
	}
	v.learn(l)
	if err := v.find(l); err != nil {
		return nil, err
	}
	v.track(known)
	return v, nil
}

// scope is what of the project is looked at, as far as it is known by now.
func (g ground) scope(outside bool) Scope {
	s := Scope{Build: g.Build, Path: g.path, HideAt: anchored(g.Hide), Relative: relativeNames(g.UserGit)}
	s.Hide = slices.DeleteFunc(slices.Clone(g.Hide), func(p string) bool { return strings.Contains(p, "/") })
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
func (v *view) gather(l *layers) (err error) {
	if v.before, err = git.Gather(v.tree, v.scope.GitPlaces(v.seen)); err != nil {
		return err
	}
	if at := v.repo.Common; at != "" && v.contains(at) && v.before.Folder(at) == nil {
		own, err := git.Gather(v.tree, git.Look{Own: []string{relative(v.path, at)}})
		if err != nil {
			return err
		}
		v.before = v.before.And(own)
	}
	inside := v.gitFolders(below{l, v.tree}, v.before)
	if v.common != nil {
		theirs, err := git.Gather(v.common, git.Look{Own: []string{"."}})
		if err != nil {
			return err
		}
		v.before, v.folders = v.before.And(theirs), v.gitFolders(below{l, v.common}, theirs)
	}
	v.folders = append(v.folders, inside...)
	return nil
}

// find lists what of all that the host executes is there, in order, and what the
// profile hides.
func (v *view) find(l *layers) error {
	for _, file := range v.Orders {
		rel, err := v.order(file)
		if err != nil {
			return err
		}
		if rel != "" {
			v.named.configured = append(v.named.configured, rel)
		}
	}
	globs, err := matches(v.tree, "protect", v.Protect)
	if err != nil {
		return err
	}
	if v.hide, err = matches(v.tree, "hide", v.scope.HideAt); err != nil {
		return err
	}
	names := slices.Concat(hostrun.Held(), v.named.executed, v.named.configured, globs)
	slices.Sort(names)
	for _, rel := range slices.Compact(names) {
		what, err := below{l, v.tree}.look(rel)
		if err != nil {
			return err
		}
		if what.Kind != beneath.Absent && what.Kind != beneath.Special {
			v.found = append(v.found, rel)
		}
	}
	return nil
}

// matches lists what globs of the profile match.
func matches(tree *beneath.Folder, key string, globs []string) (all []string, err error) {
	for _, pattern := range globs {
		matches, err := tree.Glob(pattern)
		if err != nil {
			return nil, &diag.Error{
				Op: "look for " + pattern, Err: err, Remedy: "make the pattern in " + key + " narrower",
			}
		}
		all = append(all, matches...)
	}
	return all, nil
}

// track reads git's indexes. What a session put there does not count.
func (v *view) track(known *Seen) {
	v.scope.Places = slices.Concat(v.found, v.hide)
	for _, git := range v.seen.Git {
		for _, rel := range v.found { // as its own index names it
			if below, ok := strings.CutPrefix(rel, path.Dir(git)+"/"); ok {
				v.scope.Places = append(v.scope.Places, below)
			}
		}
	}
	v.scope.readIndexes(v.tree, &v.seen, known)
	v.tracked = v.seen.Tracked
	if v.Memory == nil {
		return
	}
	v.pushed = v.seen.uncounted(v.tree, v.Memory)
	for _, name := range v.tracked.All() {
		if v.Memory.Doubted(v.tree.Join(name)) {
			v.pushed = append(v.pushed, name)
		}
	}
	v.tracked = v.tracked.Without(v.pushed)
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
		if err := at.existing(v.before.Files[i].Rel(), whyMoved); err != nil {
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
	v.scope.Unmade = v.unmade(l.placeholders)
	mounts, hidden := l.sorted()
	return Project{
		Path: v.path, Dir: v.Dir, Root: v.root, Repo: v.repo, Mounts: mounts, Notes: l.notes,
		Reported: reported, Hidden: hidden, Stay: l.stay, ReadOnly: slices.Concat(l.copied, readOnly),
		Cut: v.seen.Cut, Tracked: v.tracked.All(), Scope: v.scope, Seen: v.seen, Filled: filled,
		Before: v.before, OpenConfig: v.WritableConfig, placeholders: l.placeholders, show: v.Show,
	}, nil
}

// executed protects what the host executes. A tracked file stays writable and is
// reported: read-only it would stop `git switch` half-way. What git or claudebox
// reads as configuration never does: it takes hold by itself.
func (v *view) executed(at below) (reported, readOnly []string, err error) {
	for _, rel := range v.found {
		if !v.Strict && v.tracked.Has(rel) && !slices.Contains(v.named.configured, rel) {
			reported = append(reported, rel)
			continue
		}
		readOnly = append(readOnly, rel)
		if slices.ContainsFunc(v.pushed, func(name string) bool { return pathname.Below(name, rel) }) {
			at.note(false, "%s stays read-only: it is in git's index because a session put it there", rel)
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
