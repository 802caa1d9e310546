package aftermath

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/survey"
)

// seen is what a look at a folder saw.
type seen struct {
	project.Seen

	// Of the look afterwards only.
	wholes []whole         // as [watched] had them
	links  []link          // new ones that lead out of the folder, or where nobody looks
	pipes  []string        // those that the session made
	obeyed []string        // what a configuration names, changed, in folders that tools fill or checkouts made since
	equal  map[string]bool // files that were written anew and hold what they held
	unread []string        // folders that the agent closed, and that cannot be opened
	cut    bool            // not all was looked at, in the project or in folders that tools fill
}

// link is a new link, where it leads, and what that means.
type link struct{ rel, to, means string }

// watched is what is compared after a session beside the files that tools run, also if nobody saw the session's end.
type watched struct {
	Named  []string // tracked places that git's configuration names
	Behind []string // links of which it is compared what they lead to
	Wholes []whole  // places whose changes are reported as one, the named ones included
}

// whole is a place whose changes are reported as one.
type whole struct {
	Rel   string
	Sum   string // a hash of what it holds; empty: nothing is there
	Means string // what a change of it means
	Once  bool   // it is not told if it is told already
	To    string // the file to which it leads, and where a change of that is told
}

const byConfiguration = "git runs or obeys it, or what is in it: your git configuration, or `protect`, names it"

// watch looks at what is compared after the session beside the files that tools run.
func watch(tree *beneath.Folder, p project.Project) (w watched) {
	for _, rel := range p.Reported {
		means := cmp.Or(hostrun.Means(rel), hostrun.Means(rel+"/x"))
		if means == "" || hostrun.Ordinary(means) { // else a change is told as one of what runs unasked
			w.Named = append(w.Named, rel)
		}
	}
	w.Wholes = wholes(tree, w.Named)
	left := 2000 // entries
	for _, f := range p.Seen.Files {
		if f.Kind != beneath.Link {
			continue
		}
		if of, is := behind(tree, f.Rel, &left); is {
			w.Behind = append(w.Behind, f.Rel)
			w.Wholes = append(w.Wholes, of)
		}
	}
	return w
}

// again returns after a session the places that were compared as one before it.
func (w watched) again(tree *beneath.Folder) []whole {
	list := wholes(tree, w.Named)
	left := 200_000 // nobody waits
	for _, rel := range w.Behind {
		of, _ := behind(tree, rel, &left)
		list = append(list, of)
	}
	return list
}

// look walks a folder after the session, and returns the git places in it that count. A folder that the agent closed is
// opened: otherwise, who opens it later would find in it what nobody judged.
func (was record) look(tree *beneath.Folder, before *project.Seen) (after seen, places git.Look) {
	openRoot(tree)
	closed := func() (dirs []string) {
		return slices.DeleteFunc(slices.Clone(after.Closed),
			func(dir string) bool { return slices.Contains(was.Closed, dir) })
	}
	survey.OpenUntil(tree, func() []string {
		after.Seen = was.Scope.Again(tree, before, was.since)
		return closed()
	})
	after.unread = closed()
	places = was.Scope.GitPlaces(after.Seen)
	old := func(rel string) bool {
		return !git.Touched(tree, rel, was.since) && !was.cameTo(tree, rel) && !was.Before.Astray(tree, rel)
	}
	var filled *survey.Survey // what tools fill: nobody looked there before
	survey.OpenUntil(tree, func() []string {
		filled = was.Scope.LookFilled(tree, after.Seen)
		return slices.DeleteFunc(slices.Clone(filled.Closed), old)
	})
	after.unread = append(after.unread, slices.DeleteFunc(slices.Clone(filled.Closed), old)...)
	for _, f := range slices.Concat(after.Files, filled.Files) {
		if f.Kind == beneath.Special && f.Stamp.Change >= was.since && was.madePipe(tree, f, before) {
			after.pipes = append(after.pipes, f.Rel)
		}
	}
	for _, place := range slices.Concat(filled.Git, filled.Bare) {
		for _, name := range was.Scope.Relative {
			top := place
			if path.Base(place) == ".git" {
				top = path.Dir(place)
			}
			at := path.Join(top, name)
			if git.Touched(tree, git.TopLink(tree, at), was.since) || git.Moved(tree, at, top, was.since) ||
				was.cameTo(tree, place) {
				after.obeyed = append(after.obeyed, at)
			}
		}
	}
	after.cut = after.Cut || filled.Cut
	places.Git = append(places.Git, slices.DeleteFunc(filled.Git, old)...)
	places.Bare = append(slices.Clone(places.Bare), slices.DeleteFunc(filled.Bare, old)...)
	for _, name := range was.Scope.InEach {
		for _, place := range places.Git { // a checkout that was made since: it has the configuration of another
			what, err := tree.Look(place)
			at := path.Join(path.Dir(place), name)
			if err == nil && what.Kind == beneath.Regular && !was.Before.Has(tree.Join(place)) &&
				differs(tree, path.Dir(place), name) {
				after.obeyed = append(after.obeyed, at)
			}
		}
	}
	return after, places
}

// madePipe reports whether something is a pipe that was made since the session began. One of the user's keeps its inode
// and the time of its birth, while its other times change whenever something is written to it. before may be nil.
func (was record) madePipe(tree *beneath.Folder, f survey.File, before *project.Seen) bool {
	if before != nil && slices.ContainsFunc(before.Files, func(old survey.File) bool {
		return old.Rel == f.Rel && old.Kind == f.Kind && old.Stamp.Ino == f.Stamp.Ino
	}) {
		return false
	}
	fd, err := tree.OpenFD(f.Rel, unix.O_PATH)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	const coarse = 20 * time.Millisecond // a file system's clock may be behind by this
	var st unix.Statx_t
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_BTIME, &st)
	switch {
	case err != nil:
		return true
	case st.Mode&unix.S_IFMT != unix.S_IFIFO: // nobody waits for a socket, or an overlay's mark that a file is gone
		return false
	}
	born := time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).UnixNano()
	return st.Mask&unix.STATX_BTIME == 0 || born >= was.since+(slack-coarse).Nanoseconds()
}

// cameTo reports whether a git place where tools fill may have been moved there since the session began.
func (was record) cameTo(tree *beneath.Folder, rel string) bool {
	what, err := tree.Look(rel)
	known := err == nil && slices.Contains(was.Filled, filled{rel, what.Stamp.Ino})
	return !known && git.Moved(tree, rel, ".", was.since)
}

// openRoot makes the project readable for the user again, if the agent closed it.
func openRoot(tree *beneath.Folder) {
	at := inside(tree, "")
	if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o500 != 0o500 {
		_ = os.Chmod(at, info.Mode().Perm()|privateDir) // else the look fails, and says so
	}
}

// inside is a path in an open folder, wherever that is now.
func inside(tree *beneath.Folder, rel string) string {
	return path.Join("/proc/self/fd", strconv.Itoa(tree.FD()), rel)
}

// wholes returns the places whose changes are reported as one.
func wholes(tree *beneath.Folder, named []string) (list []whole) {
	for _, unit := range hostrun.Units {
		if what, err := tree.Look(unit.Pattern); err == nil && what.Kind != beneath.Absent {
			list = append(list, whole{Rel: unit.Pattern, Sum: stamps(tree, unit.Pattern, what), Means: unit.Means})
		}
	}
	for _, rel := range named {
		list = append(list, whole{Rel: rel, Sum: contents(tree, rel), Means: byConfiguration, Once: true})
	}
	return list
}

// stamps returns a text that changes when an entry of a folder is made, replaced or written to.
func stamps(tree *beneath.Folder, rel string, what beneath.Entry) string {
	const limit = 5000
	all := []string{fmt.Sprint(what.Stamp)}
	if what.Kind == beneath.Dir {
		names, _ := tree.Names(rel, limit) // of a larger one, as many
		for _, name := range names {
			if of, err := tree.Look(path.Join(rel, name)); err == nil && of.Kind != beneath.Dir {
				all = append(all, fmt.Sprint(name, of.Stamp))
			}
		}
	}
	slices.Sort(all)
	return hashOf(all)
}

// behind returns the place to which a link leads, if tools follow it to a file or folder of the project that they run
// or obey by the link's name. left is how many entries may still be looked at; is is false if these are too few.
func behind(tree *beneath.Folder, rel string, left *int) (of whole, is bool) {
	means := cmp.Or(hostrun.Means(rel), hostrun.MeansLink(rel))
	to, err := beneath.Leads(inside(tree, rel))
	of = whole{Rel: rel, Means: "what it leads to is not as it was: " + means, Once: true}
	if *left--; means == "" || err != nil || !pathname.Below(to, tree.Path()) || *left < 0 {
		return of, false
	}
	to = cmp.Or(strings.Trim(strings.TrimPrefix(to, tree.Path()), "/"), ".")
	what, err := tree.Look(to)
	switch {
	case err != nil:
		return of, false
	case what.Kind == beneath.Dir:
		of.Sum = stampsBehind(tree, rel, to, left)
		return of, *left >= 0
	case what.Kind != beneath.Absent:
		of.Sum, of.To = fmt.Sprint(what.Stamp), to
	}
	return of, true
}

// stampsBehind returns a hash that changes with the files in a folder that tools run or obey, or with those in folders
// below it, when they come there by a link.
func stampsBehind(tree *beneath.Folder, link, to string, left *int) string {
	wanted := func(folder string) func(string, bool) bool {
		if to != "." {
			folder = strings.TrimPrefix(folder, to)
		}
		return hostrun.In(path.Join(link, folder))
	}
	question := survey.Question{From: []string{to}, Wanted: wanted, Skipped: []string{"node_modules"}, Limit: *left}
	seen := survey.Walk(tree, question, nil)
	for _, f := range seen.Folders() {
		*left -= f.Entries
	}
	if seen.Cut {
		*left = -1
	}
	var all []string
	for _, f := range seen.Files {
		if f.Kind != beneath.Dir {
			all = append(all, fmt.Sprintf("%q %v", f.Rel, f.Stamp))
		}
	}
	return hashOf(all)
}

// hashOf returns a hash of several texts.
func hashOf(all []string) string {
	sum := sha256.Sum256([]byte(strings.Join(all, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// differs reports whether what lies at a path is other in a checkout than in the project, be it behind links.
func differs(tree *beneath.Folder, checkout, name string) bool {
	at := path.Join(checkout, name)
	to, err := beneath.Leads(inside(tree, at))
	from, none := beneath.Leads(inside(tree, name))
	below, within := strings.CutPrefix(to, tree.Join(checkout)+"/")
	switch {
	case err != nil || within && below == name:
		return contents(tree, at) != contents(tree, name)
	case none != nil || !within:
		return to != from
	}
	return tree.Join(below) != from || contents(tree, path.Join(checkout, below)) != contents(tree, below)
}

// contents returns a hash of a file, or of all files in a folder.
func contents(tree *beneath.Folder, rel string) string {
	what, err := tree.Look(rel)
	if err == nil && what.Kind == beneath.Absent {
		return ""
	}
	const limit = 1000
	files := []survey.File{{Rel: rel, Kind: what.Kind, Exec: what.Perm&0o111 != 0, Stamp: what.Stamp}}
	if what.Kind == beneath.Dir {
		files = survey.All(tree, limit, rel).Files
	}
	sum := sha256.New()
	for _, f := range files {
		content, known := sumOf(tree, f)
		if known || f.Kind == beneath.Dir {
			f.Stamp = beneath.Stamp{}
		}
		fmt.Fprintf(sum, "%q %d %t %+v %x\n", strings.TrimPrefix(f.Rel, rel), f.Kind, f.Exec, f.Stamp, content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// leading returns the links that lead out of a folder, to what the user can read or write, and those in it to what the
// host's tools run, and to folders where nobody looks for secrets. An editor, `cp`, or `git format-patch` follows them.
func (was record) leading(home string, tree *beneath.Folder, rels []string) (links []link) {
	for _, rel := range rels {
		if guard.IsLink(guard.Stops(home), tree, rel) {
			continue // claudebox's own, of a session beside
		}
		to, err := beneath.Leads(inside(tree, rel))
		below, within := strings.CutPrefix(to, tree.Path()+"/")
		what, none := tree.Look(below)
		blind := within && none == nil && what.Kind == beneath.Dir && !project.Searched(below)
		switch {
		case err != nil:
		case blind:
			const means = "a link to where secrets are not looked for: what you put there is not hidden; it leads to "
			links = append(links, link{rel, to, means + diag.Name(below)})
		case within:
			if means := was.obeyed(below); means != "" && hostrun.Means(rel) == "" && hostrun.MeansLink(rel) == "" {
				links = append(links, link{rel, to, means + "; a link leads your tools there: " + diag.Name(below)})
			}
		case !pathname.Below(to, tree.Path()) && !pathname.Below(to, "/nix/store") && !isOfOthers(to):
			const open = ", " + leadsOutside + ": your tools read and write there"
			links = append(links, link{rel, to, "a link to " + diag.Name(to) + open})
		}
	}
	return links
}

// obeyed says who runs or obeys what lies at a path, or in that folder; empty: nobody.
func (was record) obeyed(rel string) string {
	held := func(at string) bool { return pathname.Below(rel, at) && !slices.Contains(was.Hidden, at) }
	for _, names := range [][]string{was.Watched.Named, was.Covered, was.Scope.Unmade} {
		if slices.ContainsFunc(names, held) {
			return byConfiguration
		}
	}
	if slices.Contains(strings.Split(rel, "/"), ".git") {
		return "git obeys it"
	}
	for _, unit := range hostrun.Units {
		if pathname.Below(rel, unit.Pattern) {
			return unit.Means
		}
	}
	return cmp.Or(hostrun.Means(rel), hostrun.Means(rel+"/x"))
}

// isOfOthers reports whether a file belongs to the system: to another user, and closed for writing.
func isOfOthers(file string) bool {
	var st unix.Stat_t
	return unix.Stat(file, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && int(st.Uid) != os.Getuid() &&
		unix.Access(file, unix.W_OK) != nil
}

const (
	// sumLimit is how large a file may be, in bytes, for its content to be compared.
	sumLimit = 256 << 10
	// readAfter is when files are read: the start does not wait for it, and a short session does without.
	readAfter = 20 * time.Millisecond
)

type content [sha256.Size]byte

// meanwhile begins to read what files hold before the session, while it runs already: a content counts only if the
// file's time of change is still that of before. The function that it returns stops this, and returns what is known by
// then. It is called once.
func meanwhile[T any](read func(ended context.Context) T) (stop func() T) {
	ended, end := context.WithCancel(context.Background())
	taken := make(chan T, 1)
	start := time.AfterFunc(readAfter, func() { taken <- read(ended) })
	return func() (none T) {
		if end(); start.Stop() {
			return none
		}
		return <-taken
	}
}

func take(ended context.Context, dir string, files []survey.File) map[string]content {
	tree, err := beneath.Open(dir)
	if err != nil {
		return nil
	}
	defer tree.Close()
	taken := map[string]content{}
	for _, f := range files {
		if ended.Err() != nil {
			break
		}
		if hostrun.Means(f.Rel) == "" {
			continue // is never compared
		}
		if of, ok := sumOf(tree, f); ok {
			taken[f.Rel] = of
		}
	}
	return taken
}

// sumOf returns the hash of a file's content, if the file is still as it was seen.
func sumOf(tree *beneath.Folder, f survey.File) (of content, ok bool) {
	if f.Kind != beneath.Regular || f.Stamp.Size > sumLimit {
		return of, false
	}
	text, err := tree.Read(f.Rel, sumLimit)
	if err != nil {
		return of, false
	}
	what, err := tree.Look(f.Rel) // after the reading: what changed meanwhile shows
	return sha256.Sum256(text), err == nil && what.Stamp == f.Stamp
}

// equal returns the files that were written to and hold what they held before.
func equal(tree *beneath.Folder, held map[string]content, before, after []survey.File) map[string]bool {
	byRel := func(f survey.File, rel string) int { return strings.Compare(f.Rel, rel) }
	equal := map[string]bool{}
	for _, f := range after {
		at, there := slices.BinarySearchFunc(before, f.Rel, byRel)
		if was, known := held[f.Rel]; known && there && before[at] != f {
			of, ok := sumOf(tree, f)
			equal[f.Rel] = ok && of == was
		}
	}
	return equal
}
