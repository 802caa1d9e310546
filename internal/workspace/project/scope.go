package project

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/secretfile"
	"claudebox/internal/workspace/survey"
)

// Scope is what of a project is looked at, before a session and after it. It
// is all that has to be known to look once more when a session was killed.
type Scope struct {
	Build  string   // the claudebox that looks: another may look for something else
	Path   string   // the project, canonical
	Common string   // its git folder, where that lies outside; empty: it does not
	Index  string   // folder with the index of its repository; empty: there is none
	Strip  string   // what stands before the index's names above the project: "sub/"
	Hash   int      // length of that index's object names, in bytes
	Places []string // what the profile and git's configuration name, beyond the built-in lists
	Hide   []string // patterns of the profile for the last component of a name
	HideAt []string // those that are relative to the project
	// Relative are paths that the user's own git configuration makes git obey in
	// the working tree of any repository.
	Relative []string
	Unmade   []string // what git's configuration names and is not there: whoever makes it has git run or obey it
}

// Seen is what a look saw.
type Seen struct {
	*survey.Survey
	Tracked
	scope   string          // by which they were read
	indexes []beneath.Stamp // of the indexes that were read
	places  []indexPlace    // where they are
}

const (
	// walkLimit is how many entries of a project are looked at before a
	// session: some hundred milliseconds.
	walkLimit = 200_000
	// walkLimitAfter is the same for afterwards, when nobody waits and the
	// agent may have tried to be beyond it.
	walkLimitAfter = 2_000_000
)

// unwalked are folders that tools fill: what is in them is not the user's.
// [Scope.LookFilled] looks into them.
var unwalked = []string{"node_modules", "target", ".direnv", ".venv"}

// Again looks once more, afterwards, and for links that were made since, in
// nanoseconds since 1970. before is what [Scope.Look] saw, or nil.
func (s Scope) Again(tree *beneath.Folder, before *Seen, since int64) Seen {
	seen := s.walk(tree, before, walkLimitAfter, since)
	s.readIndexes(tree, &seen, before)
	return seen
}

// walk looks at all there is but the indexes.
func (s Scope) walk(tree *beneath.Folder, before *Seen, limit int, since int64) Seen {
	var walked *survey.Survey
	if before != nil {
		walked = before.Survey
	}
	question := survey.Question{Wanted: s.wanted(), Skipped: unwalked, Limit: limit, LinksSince: since}
	return Seen{Survey: survey.Walk(tree, question, walked)}
}

// Walked is what a walk depends on, as a text.
func (s Scope) Walked() string {
	return strings.Join(append([]string{s.Build, s.Path}, s.Hide...), "\x00")
}

// GitPlaces are where git places were seen. Those that an index names count
// wherever they are: git looks into them.
func (s Scope) GitPlaces(seen Seen) git.Look {
	look := git.Look{Git: slices.Clone(seen.Git), Bare: seen.Bare, Relative: s.Relative}
	for _, link := range seen.Links {
		look.Git = append(look.Git, path.Join(link, ".git"))
	}
	return look
}

// kept is what is written down of what was seen.
type kept struct {
	Walk    string
	Git     []string
	Tracked Tracked
	Scope   string
	Indexes []beneath.Stamp
}

// Pack writes down what was seen, for a later look at the same scope to go by.
// Only this very build can read it.
func (s Seen) Pack() []byte {
	return cachefile.Encode(kept{string(s.Survey.Pack()), s.Git, s.Tracked, s.scope, s.indexes})
}

// Unpack reads it back; nil when it is none.
func Unpack(content []byte) *Seen {
	var k kept
	if !cachefile.Decode(content, &k) {
		return nil
	}
	walk := survey.Unpack([]byte(k.Walk))
	if walk == nil {
		return nil
	}
	walk.Git = k.Git
	return &Seen{Survey: walk, Tracked: k.Tracked, scope: k.Scope, indexes: k.Indexes}
}

// wanted tells the names that the report or the hiding may be about.
func (s Scope) wanted() func(folder string) func(name []byte, dir bool) bool {
	return func(folder string) func(name []byte, dir bool) bool {
		runs, last := hostrun.In(folder), []byte(path.Base(folder))
		return func(name []byte, dir bool) bool { return runs(name) || !dir && s.looksSecret(last, name) }
	}
}

// Hides reports whether what comes to lie at a path would be hidden for its name.
func (s Scope) Hides(rel string) bool {
	folder, name := lastTwo([]byte(rel))
	verdict := secretfile.Of(folder, name)
	return verdict == secretfile.Secret || verdict == secretfile.Ask || s.isNamed(name) ||
		slices.ContainsFunc(s.HideAt, func(pattern string) bool { return beneath.Matches(pattern, rel) })
}

// MayHide tells the same of a file whose content would decide.
func (s Scope) MayHide(rel string) bool { return s.looksSecret(lastTwo([]byte(rel))) || s.Hides(rel) }

// looksSecret judges the last component of a path, and that of its folder.
func (s Scope) looksSecret(folder, name []byte) bool {
	return secretfile.Of(folder, name) != secretfile.Plain || s.isNamed(name)
}

// isNamed reports whether the profile hides a name.
func (s Scope) isNamed(name []byte) bool {
	for _, pattern := range s.Hide {
		if matched, err := path.Match(pattern, string(name)); err == nil && matched {
			return true
		}
	}
	return false
}

// lastTwo are the last components of a path.
func lastTwo(name []byte) (folder, last []byte) {
	at := bytes.LastIndexByte(name, '/')
	if at < 0 {
		return nil, name
	}
	above := name[:at]
	return above[bytes.LastIndexByte(above, '/')+1:], name[at+1:]
}

// readIndexes reads the indexes of the project's repositories, unless they are
// what they were.
func (s Scope) readIndexes(tree *beneath.Folder, seen, before *Seen) {
	places := s.indexPlaces(tree, seen.Git)
	s.Unmade = nil
	seen.places, seen.scope, seen.indexes = places, string(cachefile.Encode(s)), nil
	for _, place := range places {
		seen.indexes = append(seen.indexes, place.stamp())
	}
	if before != nil && seen.scope == before.scope && slices.Equal(seen.indexes, before.indexes) &&
		slices.Equal(seen.Git, before.Git) {
		seen.Tracked = before.Tracked
		return
	}
	seen.Same = false
	if len(places) == 0 {
		seen.Tracked = Tracked{}
		return
	}
	x := indexes{matters: s.matters(), small: mayHoldToken}
	for _, place := range places {
		x.read(place)
	}
	for _, names := range [][]string{x.Names, x.Small, x.Links, x.Runs, x.Hushed} {
		slices.Sort(names)
	}
	seen.Tracked = x.Tracked
}

// indexPlaces are the git folders with an index that counts here.
func (s Scope) indexPlaces(tree *beneath.Folder, places []string) (list []indexPlace) {
	if s.Index != "" {
		list = append(list, indexPlace{git: s.Index, hash: s.Hash, strip: s.Strip})
	}
	for _, place := range places {
		if place == ".git" {
			continue
		}
		if git := leadsTo(tree, place); git != "" {
			below := strings.TrimPrefix(path.Dir(place)+"/", "./")
			list = append(list, indexPlace{git: tree.Join(git), hash: max(s.Hash, sha1Size), below: below})
		}
	}
	return list
}

// uncounted are the names in the indexes that do not count, by what is remembered
// of each index: those that sessions added; and those that sessions hid and that
// are tracked since, by whom nobody knows, as git takes names out of commits and
// other indexes, unless who added them has read the file.
func (s Seen) uncounted(tree *beneath.Folder, of Memory) (names []string) {
	for _, place := range s.places {
		id := place.id()
		for _, name := range of.Pushed(id) {
			if rel, in := place.inProject(name); in {
				names = append(names, rel)
			}
		}
		for _, name := range of.Hidden(id) {
			if rel, in := place.inProject(name); in && s.Has(rel) && !place.proves(tree, name) {
				names = append(names, rel)
			}
		}
	}
	return names
}

// Indexed gives the indexes that may hold a name of the project: their git
// folders, and the name as it stands there.
func (s Seen) Indexed(rel string) (at []Indexed) {
	for _, place := range s.places {
		if below, in := strings.CutPrefix(rel, place.below); in {
			at = append(at, Indexed{place.id(), place.strip + below})
		}
	}
	return at
}

// Indexed is a name in the index of a git folder.
type Indexed struct {
	Git  identity.ID
	Name string
}

func mayHoldToken(name []byte) bool {
	folder, last := lastTwo(name)
	return secretfile.Of(folder, last) == secretfile.Look
}

// matters tells of which names, by their path, it must be known whether they
// are tracked.
func (s Scope) matters() func(name []byte) bool {
	firsts := map[string][]string{}
	for _, list := range [][]string{executedNames, s.Places} {
		for _, place := range list {
			first, _, _ := strings.Cut(place, "/")
			firsts[first] = append(firsts[first], place)
		}
	}
	return func(name []byte) bool {
		folder, last := lastTwo(name)
		verdict := secretfile.Of(folder, last)
		if verdict == secretfile.Secret || verdict == secretfile.Ask || s.isNamed(last) || string(last) == "config" ||
			len(s.HideAt) > 0 && s.Hides(string(name)) {
			return true
		}
		first, _, _ := bytes.Cut(name, []byte("/"))
		places := firsts[string(first)]
		return slices.ContainsFunc(places, func(place string) bool { return pathname.Below(string(name), place) })
	}
}
