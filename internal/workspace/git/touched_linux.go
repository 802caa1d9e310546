package git

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/survey"
)

// Deepen looks deep into the git folders of a snapshot: where git keeps its own it makes no link, no pipe, no
// repository, and nothing that is closed. One that could not be looked at before is left: it was hidden inside, so no
// agent came there.
func (s Snapshot) Deepen(root *beneath.Folder, before Snapshot) {
	for i := range s.Folders {
		f, was := &s.Folders[i], before.Folder(s.Folders[i].Path)
		if was != nil && slices.Contains(was.Closed, ".") && slices.Contains(f.Closed, ".") {
			continue
		}
		const limit = 200_000
		parts := []string{path.Join(f.Rel, "modules"), path.Join(f.Rel, "worktrees")}
		seen := survey.Walk(root, survey.Question{
			From: []string{f.Rel}, Limit: limit, LinksSince: 1,
			Apart: slices.Concat(f.apart, parts),
		}, nil)
		isNew := func(rel string) bool { return was.Entry(strings.TrimPrefix(rel, f.Rel+"/")) == nil }
		isPlace := func(rel string) bool { return rel != f.Rel && !before.Has(path.Join(root.Path(), rel)) }
		f.odd = f.odd || seen.Cut || was == nil && len(seen.Closed) > 0 ||
			slices.ContainsFunc(parts, reader{root, false}.isBare) ||
			slices.ContainsFunc(linksAndPipes(seen), isNew) ||
			slices.ContainsFunc(slices.Concat(seen.Git, seen.Bare), isPlace)
	}
}

// linksAndPipes lists what a walk saw that wanted no files.
func linksAndPipes(seen *survey.Survey) []string {
	list := slices.Clone(seen.NewLinks)
	for _, pipe := range seen.Files {
		list = append(list, pipe.Rel)
	}
	return list
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
	return slices.ContainsFunc(slices.Concat(seen.Git, seen.Bare), isKept) ||
		slices.ContainsFunc(linksAndPipes(seen), func(at string) bool { return isKept(path.Dir(at)) }) ||
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
