package git

import (
	"errors"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/survey"
)

const (
	writesThrough = "git would write through it"
	// StaysLocked is why a lock may not stay when nobody is there to take it away.
	StaysLocked = "git would wait for whoever made it"
	strayPlace  = "git puts no repository there"
)

// deep looks, after a session, at what lies in folders with any number of files: there are no links, pipes and sockets
// in them, no locks, and no git places.
func (f folderLook) deep() error {
	var trees []string
	for _, e := range f.Entries {
		at := path.Join(f.Rel, e.Name)
		switch sort := ruleOf(e.Name).sort; {
		case e.Kind != beneath.Dir:
		case sort == store:
			f.objects(at, f.before.Entry(e.Name))
		case sort == tree || sort == onlyOld:
			trees = append(trees, at)
		case sort == ours:
			f.strays(openWalk(f.root, []string{at}, nil))
		}
	}
	if len(trees) == 0 {
		return nil
	}
	seen := openWalk(f.root, trees, survey.Everything)
	if seen.Cut || len(seen.Closed) > 0 {
		return errors.New("cannot look at all of " + diag.Name(f.abs(trees[0])))
	}
	replaced := path.Join(f.Rel, "refs/replace") + "/"
	for _, file := range seen.Files {
		switch {
		case file.Kind == beneath.Link || file.Kind == beneath.Special:
			f.aside(file.Rel, writesThrough)
		case file.Kind == beneath.Dir || file.Stamp.Change < f.Since:
		case strings.HasPrefix(file.Rel, replaced):
			f.replaces = true
		case strings.HasSuffix(file.Rel, ".lock") && file.Kind == beneath.Regular:
			f.aside(file.Rel, StaysLocked)
		}
	}
	f.strays(seen)
	return nil
}

// strays has git take what lies where it puts no repository for none, if it was changed or came there since the session
// began.
func (f folderLook) strays(seen *survey.Survey) {
	isNew := func(stray string) bool {
		return Touched(f.root, stray, f.Since) || Moved(f.root, stray, f.Rel, f.Since)
	}
	for _, stray := range seen.Bare {
		if isNew(stray) {
			f.disarm(stray, strayPlace)
		}
	}
	for _, stray := range seen.Git {
		if isNew(stray) {
			f.odd = append(f.odd, Repair{Do: Rename, Rel: stray, Why: strayPlace})
		}
	}
}

// Touched reports whether a git place was changed since a time, in nanoseconds
// since 1970: what git does with it, not what it keeps in it. A git place, a link
// or a pipe among that is a change whenever it was made: git makes none there.
func Touched(root *beneath.Folder, rel string, since int64) bool {
	what, err := root.Look(rel)
	if err != nil || what.Stamp.Change >= since {
		return true
	}
	if what.Kind != beneath.Dir {
		return false
	}
	isKept := func(folder string) bool {
		return slices.ContainsFunc(strings.Split(strings.TrimPrefix(folder, rel), "/"),
			func(name string) bool { return name == "objects" || name == "refs" || name == "logs" })
	}
	const limit = 50_000
	seen := survey.Walk(root, survey.Question{
		From: []string{rel}, Limit: limit, LinksSince: 1,
		Wanted: func(folder string) func(string, bool) bool {
			return func(string, bool) bool { return !isKept(folder) }
		},
	}, nil)
	odd := slices.Clone(seen.NewLinks)
	for _, f := range seen.Files {
		odd = append(odd, f.Rel)
	}
	return slices.ContainsFunc(slices.Concat(seen.Git, seen.Bare), isKept) ||
		slices.ContainsFunc(odd, func(at string) bool { return isKept(path.Dir(at)) }) ||
		seen.ChangedSince(since, isKept)
}

// Moved reports whether a folder on the way from a top to what lies at rel was changed since a time, in nanoseconds
// since 1970. Who moves a folder changes it, and nothing of what lies in it: that may have been made long ago, where
// nobody looks ([survey.Walk] stops at a depth).
func Moved(root *beneath.Folder, rel, top string, since int64) bool {
	for at := path.Dir(rel); at != top && at != "."; at = path.Dir(at) {
		if what, err := root.Look(at); err != nil || what.Stamp.Change >= since {
			return true
		}
	}
	return false
}

// objects looks at the folders of objects that were changed. Git makes only
// files in them, and deletes and writes behind a link.
func (f folderLook) objects(at string, before *Entry) {
	list, err := f.list(at)
	if err != nil {
		f.disarm(f.Rel, "its objects cannot be looked at")
		return
	}
	what, err := f.look(at)
	same := err == nil && before != nil && before.Stamp.Ino == what.Stamp.Ino
	for _, n := range list {
		f.object(path.Join(at, n.name), n.what, same, 1)
	}
}

// object looks at one name below objects/; same: the folder that it is in was there before.
func (f folderLook) object(at string, what beneath.Entry, same bool, depth int) {
	name := path.Base(at)
	deeper := name == "info" || name == "pack" // what is in these two may have changed deeper
	switch {
	case same && what.Stamp.Change < f.Since && !deeper:
		return
	case !isObjects(name, what.Kind, depth):
		f.aside(at, "git makes none of this name there")
		return
	case isGraph(name):
		if what.Stamp.Change >= f.Since || what.Kind == beneath.Dir && Touched(f.root, at, f.Since) {
			f.odd = append(f.odd, Repair{Do: Drop, Rel: at})
		}
		return
	case what.Kind == beneath.Regular:
		return
	case what.Kind != beneath.Dir:
		f.aside(at, writesThrough)
		return
	}
	list, err := f.list(at)
	if err != nil {
		f.aside(at, "it cannot be looked at")
	}
	for _, n := range list {
		f.object(path.Join(at, n.name), n.what, false, depth+1)
	}
}

// isGraph reports whether a name below objects/ is that of a cache of what commits and packs hold. git does not compare
// it with them: by a forged one the next commit could have another tree than it shows. git makes new ones.
func isGraph(name string) bool {
	return name == "commit-graph" || name == "commit-graphs" || strings.HasPrefix(name, "multi-pack-index")
}

// isObjects reports whether git makes a name below objects/. No file there is
// called as one by which a folder is a repository, or that sends others elsewhere.
func isObjects(name string, kind beneath.Kind, depth int) bool {
	switch {
	case kind != beneath.Dir:
		return !slices.Contains([]string{".git", "head", "commondir", "config", "refs", "objects", "http-alternates"},
			strings.ToLower(name))
	case depth == 1:
		return name == "info" || name == "pack" || len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
	}
	return depth == 2 && (name == "commit-graphs" || name == "multi-pack-index.d")
}
