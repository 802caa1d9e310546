package aftermath

import (
	"path"
	"slices"
	"strings"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/gitdefuse"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/survey"
)

// openRounds is how often folders that the agent closed are opened, and what
// is closed in them found.
const openRounds = 20

// look walks the project afterwards. A folder that the agent closed is opened:
// who opens it later would find in it what nobody judged.
func (was record) look(tree *beneath.Folder, before *project.Seen) project.Seen {
	after := was.Scope.Again(tree, before, was.since())
	for range openRounds {
		if !openAll(tree, was.closedInside(after)) {
			break
		}
		after = was.Scope.Again(tree, before, was.since())
	}
	return after
}

func (was record) closedInside(after project.Seen) []string {
	return slices.DeleteFunc(slices.Clone(after.Closed), func(dir string) bool { return slices.Contains(was.Closed, dir) })
}

func openAll(tree *beneath.Folder, closed []string) (opened bool) {
	for _, dir := range closed {
		opened = tree.Chmod(dir, privateDir) == nil || opened
	}
	return opened
}

// unseen is what keeps a look from being a whole one, where that was not so
// before: the next launch looks again.
func (was record) unseen(after project.Seen) (faults []string) {
	for _, dir := range was.closedInside(after) {
		faults = append(faults, "look into "+dir+": it was closed inside")
	}
	if after.Cut && !was.Cut {
		faults = append(faults, "look at all of the project: it has more entries than can be, since this session")
	}
	return faults
}

// filled makes harmless what git takes for a repository in the folders that
// tools fill. Nobody looked there before the session: what was changed since
// it began counts as the agent's.
func (was record) filled(r *Report, b *gitdefuse.Bench, after project.Seen) {
	seen := was.Scope.LookFilled(b.Root, after)
	for range openRounds {
		closed := slices.DeleteFunc(slices.Clone(seen.Closed), func(dir string) bool { return !was.touched(b.Root, dir) })
		if !openAll(b.Root, closed) {
			break
		}
		seen = was.Scope.LookFilled(b.Root, after)
	}
	r.Cut = r.Cut || seen.Cut
	for _, rel := range seen.Bare {
		if was.touched(b.Root, rel) {
			r.try(b, b.Bare, rel)
		}
	}
	for _, rel := range seen.Git {
		if was.touched(b.Root, rel) {
			r.try(b, b.Place, rel)
			was.links(r, b, rel)
		}
	}
}

func everything(string) func([]byte) bool { return func([]byte) bool { return true } }

// links takes the links and pipes away that came into a git folder, the user's
// own too, since the session began. Git makes none there and writes through
// them: a line of logs/HEAD, which holds the names of branches, would be one of
// whatever file of the user it is a link for.
func (was record) links(r *Report, b *gitdefuse.Bench, rel string) {
	if what, err := b.Root.Look(rel); err != nil || what.Kind != beneath.Dir {
		return
	}
	whole, own := path.Base(rel) == ".git" || b.Root.Path() == was.Scope.Common, was.known(b.Root.Join(rel))
	question := survey.Question{From: []string{rel}, Skipped: []string{"objects", "hooks", "logs", "refs"}, Limit: 1_000_000, Wanted: everything}
	seen := survey.Walk(b.Root, question, nil)
	// Below these a folder may have any name, as those of branches.
	question.From = slices.DeleteFunc(seen.Skipped, func(dir string) bool { return !slices.Contains([]string{"logs", "refs"}, path.Base(dir)) })
	names := &survey.Survey{}
	if question.Skipped = nil; len(question.From) > 0 {
		names = survey.Walk(b.Root, question, nil)
	}
	if seen.Cut || names.Cut || openAll(b.Root, slices.Concat(seen.Closed, names.Closed)) {
		r.Failures = append(r.Failures, "look for links in "+b.Root.Join(rel))
	}
	others := slices.DeleteFunc(seen.Files, func(f survey.File) bool { return own && path.Base(f.Rel) == "hooks" }) // read-only inside
	for _, f := range slices.Concat(others, names.Files) {
		below := relativeTo(rel, f.Rel)
		switch {
		case f.Kind != beneath.Link && f.Kind != beneath.Special || !isGits(below, whole) || gitdefuse.IsAside(f.Rel):
		case own && !strings.Contains(below, "/") && f.Stamp.Change < was.since(): // the user's
		default: // one that lies deeper may have come with its folder
			r.try(b, b.Link, f.Rel)
		}
	}
}

// since is when the session began, in nanoseconds since 1970. The clock of a
// file system may be behind.
func (was record) since() int64 { return was.Began - time.Second.Nanoseconds() }

// ofBare are what git writes to in a repository that is a folder with other
// things in it, perhaps the project.
var ofBare = []string{
	"HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "MERGE_MSG", "SQUASH_MSG", "COMMIT_EDITMSG", "index", "packed-refs", "shallow", "config",
	"logs", "refs", "info", "worktrees", "objects",
}

func isGits(rel string, whole bool) bool {
	first, _, _ := strings.Cut(rel, "/")
	return whole || slices.Contains(ofBare, first)
}

// touched tells whether something of a git folder by which git decides what it
// does was changed since the session began. No program can set the time of
// change.
func (was record) touched(tree *beneath.Folder, rel string) bool {
	since := was.since()
	what, err := tree.Look(rel)
	if err != nil || what.Stamp.Change >= since {
		return true
	}
	if what.Kind != beneath.Dir {
		return false
	}
	const limit = 50_000
	return survey.Walk(tree, survey.Question{
		From: []string{rel}, Skipped: []string{"objects", "refs", "logs"}, Limit: limit,
		Wanted: everything,
	}, nil).ChangedSince(since)
}
