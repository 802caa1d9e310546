package project

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
)

// Scope says what of a project is looked at, before a session and after it. It is all that must be known to look again
// if a session was killed.
type Scope struct {
	Build  string   // the claudebox that looks: another may look for something else
	Path   string   // the project, canonical
	Common string   // its git folder, where that lies outside; empty: it does not
	Index  string   // folder with the index of its repository; empty: there is none
	Strip  string   // what stands before the index's names above the project: "sub/"
	Hash   int      // length of that index's object names, in bytes
	Places []string // what the profile and git's configuration name, beyond the built-in lists
	// Hide and Protect are the patterns of the profile.
	Hide, Protect []string
	// Relative are paths that the user's own git configuration makes git obey in the working tree of any repository.
	Relative []string
	InEach   []string // paths that the repositories' own configurations name, in each of their worktrees
	Unmade   []string // what git's configuration names and does not exist: git would obey what an agent makes there
	Led      []Led    // folders that have the name of a folder of secrets, too
	Entered  []string // folders that tools fill, by their names, and in which files are tracked
}

// Led is a folder of the project with another path, by a link. Both are relative to the project.
type Led struct{ To, Link string }

// Seen is what a look saw.
type Seen struct {
	*survey.Survey
	Tracked
	entered []string        // see [Scope]
	scope   string          // by which they were read
	indexes []beneath.Stamp // of the indexes that were read
	places  []indexPlace    // where they are
}

const (
	// walkLimit is how many entries of a project are looked at before a session: some hundred milliseconds.
	walkLimit = 200_000
	// walkLimitAfter is the same for afterwards, when nobody waits and the agent may have tried to be beyond it.
	walkLimitAfter = 2_000_000
)

// unwalked are folders that only [Scope.LookFilled] looks into, unless git has some of what is in them.
var unwalked = hostrun.Filling()

// Searched reports whether secrets are looked for in a folder of a project: not in git's own, nor where tools fill.
func Searched(rel string) bool {
	return !hostrun.IsFilled(rel) && !slices.Contains(strings.Split(rel, "/"), ".git")
}

// Again looks at the project again, after a session, and also for links that were made since, in nanoseconds since
// 1970. before is what was seen at the beginning, or nil.
func (s Scope) Again(tree *beneath.Folder, before *Seen, since int64) Seen {
	seen := s.walk(tree, before, walkLimitAfter, since)
	seen.entered = s.entered(tree, seen, before) // by the next session
	s.readIndexes(tree, &seen, before)
	return seen
}

// Beyond returns how many entries a project has if the next launch does not look at all of them; 0: it does.
func (s Seen) Beyond() int {
	if n := s.Entries(); n > walkLimit {
		return n
	}
	return 0
}

// walk looks at everything but the indexes.
func (s Scope) walk(tree *beneath.Folder, before *Seen, limit int, since int64) Seen {
	if before == nil {
		before = &Seen{}
	}
	question := survey.Question{
		Wanted: s.wanted, Skipped: unwalked, Entered: s.Entered, Limit: limit, LinksSince: since,
	}
	return Seen{Survey: survey.Walk(tree, question, before.Survey), entered: s.Entered}
}

// walkAll looks at everything but the indexes, which say of folders that tools fill whether they are the user's work:
// entered are those that are. An agent can take them out of an index: what was the user's once (always) stays so.
func (s Scope) walkAll(tree *beneath.Folder, known *Seen, always []string) (entered []string, seen Seen) {
	const rounds = 4 // more only for repositories in such folders of each other
	with := func(entered []string) []string {
		return slices.Compact(slices.Sorted(slices.Values(slices.Concat(always, entered))))
	}
	before := known
	if entered = with(nil); known != nil {
		entered = with(known.entered)
	}
	for range rounds {
		s.Entered = entered
		seen = s.walk(tree, before, walkLimit, 0)
		if entered = with(s.entered(tree, seen, known)); slices.Equal(entered, s.Entered) {
			break
		}
		before = &seen
	}
	return entered, seen
}

// Walked returns everything that a walk depends on, as a text.
func (s Scope) Walked() string {
	return strings.Join(slices.Concat([]string{s.Build, s.Path}, s.Hide, s.Protect), "\x00")
}

// GitPlaces returns where git places were seen. Those that an index names count wherever they are, because git looks
// into them.
func (s Scope) GitPlaces(seen Seen) git.Look {
	look := git.Look{Git: slices.Clone(seen.Git), Bare: seen.Bare, Relative: s.Relative}
	for _, link := range seen.Links {
		look.Git = append(look.Git, path.Join(link, ".git"))
	}
	return look
}

// kept is the part of [Seen] that is written into a file.
type kept struct {
	Folders []survey.Folder
	Git     []string
	Tracked Tracked
	Entered []string
	Scope   string
	Indexes []beneath.Stamp
}

// Pack encodes what was seen, for a later look at the same scope. Only this very build can decode it.
func (s Seen) Pack() []byte {
	return cachefile.Encode(kept{s.Folders(), s.Git, s.Tracked, s.entered, s.scope, s.indexes})
}

// Unpack decodes what [Seen.Pack] returned; it returns nil for anything else.
func Unpack(content []byte) *Seen {
	var k kept
	if !cachefile.Decode(content, &k) {
		return nil
	}
	walk := survey.Of(k.Folders)
	walk.Git = k.Git
	return &Seen{Survey: walk, Tracked: k.Tracked, entered: k.Entered, scope: k.Scope, indexes: k.Indexes}
}

// wanted returns a function that chooses the names in a folder that may be reported or hidden.
func (s Scope) wanted(folder string) func(name string, dir bool) bool {
	runs, folders, patterns := hostrun.In(folder), secretfile.Folders(folder), slices.Concat(s.Hide, s.Protect)
	return func(name string, dir bool) bool {
		return runs(name, dir) || !dir && folder == "." && hostrun.IsSetting(name) || Matches(patterns, name, true) ||
			!dir && (secretfile.Of(folder, name) != secretfile.Plain || folders(name)) // a link to one, perhaps
	}
}

// verdict judges the names of a file: its own, and those that it has by links to folders.
func (s Scope) verdict(rel string) secretfile.Verdict {
	v := s.byName(rel)
	for _, l := range s.Led {
		if rest, in := strings.CutPrefix(rel, l.To+"/"); in {
			v = max(v, secretfile.Of(split(l.Link+"/"+rest)))
		}
	}
	return v
}

// byName judges the name of a file, by the profile and by the names that secrets usually have.
func (s Scope) byName(rel string) secretfile.Verdict {
	if len(s.Hide) > 0 && Matches(s.Hide, rel, false) {
		return secretfile.Secret
	}
	return secretfile.Of(split(rel))
}

// Hides reports whether a new file at a path would be hidden because of its name.
func (s Scope) Hides(rel string) bool {
	v := s.verdict(rel)
	return v == secretfile.Secret || v == secretfile.Suspect
}

// split returns the folder of a path, and its last component.
func split(name string) (folder, last string) {
	at := strings.LastIndexByte(name, '/')
	return name[:max(at, 0)], name[at+1:]
}

// Filled is what git takes for a repository in the folders that tools fill. Looking for it takes as long as everything
// else together, so it is kept for later launches until a tool fills the folders again. A repository that a person
// makes deep in there is seen no sooner.
type Filled struct {
	State string   // of the folders; empty: it may change and not be seen to
	Repos []string // relative to the project
}

// LookFilled walks the folders of seen that tools fill. It looks only for pipes, and for what git takes for a
// repository.
func (s Scope) LookFilled(tree *beneath.Folder, seen Seen) *survey.Survey {
	if len(seen.Skipped) == 0 {
		return &survey.Survey{}
	}
	return survey.Walk(tree, survey.Question{From: seen.Skipped, Limit: walkLimitAfter}, nil)
}

// filledState returns a text that changes when the folders are filled again: npm writes to node_modules itself, pip
// checks out in src of an environment.
func filledState(tree *beneath.Folder, folders []string) string {
	now := time.Now().UnixNano()
	var stamps []beneath.Stamp
	for _, dir := range folders {
		places := []string{dir}
		if path.Base(dir) == ".venv" {
			places = append(places, dir+"/src")
		}
		for _, place := range places {
			what, err := tree.Look(place)
			if err != nil || !beneath.IsSettled(what.Stamp.Change, now) {
				return ""
			}
			stamps = append(stamps, what.Stamp)
		}
	}
	return fmt.Sprint(folders, stamps)
}

// lookFilled looks at repositories in folders that tools fill. Little of them is protected: what is secret in their
// configurations (pip keeps the token of a URL in a checkout of its own), and what those name.
func (v *view) lookFilled() (filled Filled, repos git.Snapshot) {
	if len(v.seen.Skipped) == 0 {
		return filled, repos
	}
	filled = v.Memory.Filled(v.path)
	if now := filledState(v.tree.Folder, v.seen.Skipped); now == "" || now != filled.State {
		found := v.scope.LookFilled(v.tree.Folder, v.seen)
		filled = Filled{now, slices.Concat(found.Git, found.Bare)}
		if found.Cut {
			v.note(true, "the folders that tools fill have too many entries: configurations of git in them may be "+
				"seen with their secrets")
		}
	}
	return filled, git.Gather(v.tree.Folder, git.Look{Git: filled.Repos})
}
