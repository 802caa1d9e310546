package aftermath

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/survey"
)

// seen is what a look at a folder saw, as values.
type seen struct {
	project.Seen
	units map[string]beneath.Stamp // the places that are told of as one
	named map[string]string        // tracked places that git's configuration names, and what sums them up

	// Of the look afterwards only.
	links  []link          // new ones that lead out of the folder
	pipes  []string        // new ones
	equal  map[string]bool // files that were written anew and hold what they held
	unread []string        // folders that the agent closed, and that cannot be opened
	cut    bool            // not all was looked at, what tools fill included
}

// link is one that leads out of the folder that it is in.
type link struct{ rel, to string }

// lookBefore sees what the project itself did not look for.
func lookBefore(tree *beneath.Folder, p project.Project) *seen {
	var named []string
	for _, rel := range p.Reported {
		if hostrun.Means(rel)+hostrun.Means(rel+"/x") == "" {
			named = append(named, rel)
		}
	}
	return &seen{Seen: p.Seen, units: unitsOf(tree), named: contents(tree, named)}
}

// look walks a folder afterwards, and gives the git places in it that count. A
// folder that the agent closed is opened: who opens it later would find in it what
// nobody judged.
func (was record) look(tree *beneath.Folder, before *project.Seen) (after seen, places git.Look) {
	openRoot(tree)
	closed := func() (dirs []string) {
		return slices.DeleteFunc(slices.Clone(after.Closed),
			func(dir string) bool { return slices.Contains(was.Closed, dir) })
	}
	openUntil(tree, func() []string {
		after.Seen = was.Scope.Again(tree, before, was.since())
		return closed()
	})
	after.unread = closed()
	places = was.Scope.GitPlaces(after.Seen)
	old := func(rel string) bool { return !git.Touched(tree, rel, was.since()) }
	var filled *survey.Survey // what tools fill: nobody looked there before
	openUntil(tree, func() []string {
		filled = was.Scope.LookFilled(tree, after.Seen)
		return slices.DeleteFunc(slices.Clone(filled.Closed), old)
	})
	for _, f := range slices.Concat(after.Files, filled.Files) {
		if f.Kind == beneath.Special && f.Stamp.Change >= was.since() {
			after.pipes = append(after.pipes, f.Rel)
		}
	}
	after.cut = after.Cut || filled.Cut
	places.Git = append(places.Git, slices.DeleteFunc(filled.Git, old)...)
	places.Bare = append(slices.Clone(places.Bare), slices.DeleteFunc(filled.Bare, old)...)
	return after, places
}

// openUntil looks, opens the folders that were closed, and looks again.
func openUntil(tree *beneath.Folder, look func() (closed []string)) {
	const rounds = 20
	for range rounds {
		opened := false
		for _, dir := range look() {
			opened = tree.Chmod(dir, privateDir) == nil || opened
		}
		if !opened {
			return
		}
	}
}

// openRoot lets the user into their project again.
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

// unitsOf looks at the places that are told of as one.
func unitsOf(tree *beneath.Folder) map[string]beneath.Stamp {
	units := map[string]beneath.Stamp{}
	for _, unit := range hostrun.Units {
		if what, err := tree.Look(unit.Pattern); err == nil && what.Kind != beneath.Absent {
			units[unit.Pattern] = what.Stamp
		}
	}
	return units
}

// contents sums up files, and all files in folders; empty: nothing is there.
func contents(tree *beneath.Folder, rels []string) map[string]string {
	sums := map[string]string{}
	for _, rel := range rels {
		what, err := tree.Look(rel)
		if sums[rel] = ""; err == nil && what.Kind == beneath.Absent {
			continue
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
			fmt.Fprintf(sum, "%q %d %t %+v %x\n", f.Rel, f.Kind, f.Exec, f.Stamp, content)
		}
		sums[rel] = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return sums
}

// leadingOut finds where links lead that leave a folder for what the user could
// read or write: an editor, or `cp`, goes through them.
func leadingOut(tree *beneath.Folder, rels []string) (links []link) {
	for _, rel := range rels {
		to, err := beneath.Leads(inside(tree, rel))
		if err == nil && !pathname.Below(to, tree.Path()) && !pathname.Below(to, "/nix/store") && !isOfOthers(to) {
			links = append(links, link{rel, to})
		}
	}
	return links
}

// isOfOthers tells a file that is not the user's, and closed for writing: one
// of the system.
func isOfOthers(file string) bool {
	var st unix.Stat_t
	return unix.Stat(file, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && int(st.Uid) != os.Getuid() &&
		unix.Access(file, unix.W_OK) != nil
}
