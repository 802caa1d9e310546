package project

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's
	"crypto/sha256"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
	"claudebox/internal/linux/identity"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/secretfile"
)

// indexLimit is what a git index may have, in bytes: a million files.
const indexLimit = 128 << 20

// Tracked is what git's indexes hold of the names that matter here. Paths are
// relative to the project, and in order.
type Tracked struct {
	Names []string
	Small []string // those that matter only for a token that they may hold
	Links []string // repositories in the working tree, whose configuration git obeys
	Runs  []string // what the host's tools run
	// Hushed are files of which git shows no change.
	Hushed []string
}

// All are the names that matter for any reason, by and by.
func (t Tracked) All() []string { return slices.Concat(t.Names, t.Small) }

// Without leaves out names.
func (t Tracked) Without(names []string) Tracked {
	if len(names) == 0 {
		return t
	}
	out := func(name string) bool { return slices.Contains(names, name) }
	t.Names, t.Small = slices.DeleteFunc(slices.Clone(t.Names), out), slices.DeleteFunc(slices.Clone(t.Small), out)
	return t
}

// Has reports whether a place is tracked, or something below it.
func (t Tracked) Has(rel string) bool {
	if _, found := slices.BinarySearch(t.Names, rel); found {
		return true
	}
	at, found := slices.BinarySearch(t.Names, rel+"/")
	return found || at < len(t.Names) && strings.HasPrefix(t.Names[at], rel+"/")
}

// indexPlace is a git folder whose index counts. What cannot be read of it tracks
// nothing: what is not known to be tracked is protected.
type indexPlace struct {
	git   string // the git folder's path
	hash  int    // length of object names, in bytes, where its own configuration does not tell
	strip string // what stands before the names above the project
	below string // where in the project the working tree lies: "sub/"
}

// id is the git folder's, wherever it is.
func (p indexPlace) id() identity.ID { return identity.At(unix.AT_FDCWD, p.git) }

// common is that of the repository, which is the same in each worktree.
func (p indexPlace) common() identity.ID {
	if above := path.Dir(p.git); path.Base(above) == "worktrees" {
		p.git = path.Dir(above)
	}
	return p.id()
}

// inProject gives a name of the index as a path in the project.
func (p indexPlace) inProject(name string) (rel string, in bool) {
	rest, in := strings.CutPrefix(name, p.strip)
	return p.below + rest, in && rest != ""
}

func (p indexPlace) stamp() beneath.Stamp {
	at, err := beneath.Open(p.git)
	if err != nil {
		return beneath.Stamp{}
	}
	defer at.Close()
	what, _ := at.Look("index")
	return what.Stamp
}

// read adds what the index holds of the names that matter, by the path in its
// working tree.
func (p indexPlace) read(t *Tracked, s Scope, named func(name []byte) bool) {
	content, err := beneath.ReadIn(p.git, "index", indexLimit)
	if err != nil {
		return
	}
	if config, err := beneath.ReadIn(p.git, "config", configLimit); p.below != "" && err == nil {
		entries, _ := gitconfig.Parse(config)
		p.hash = hashSize(entries)
	}
	// What comes before a fault counts: git reads it, and so may the agent.
	_ = git.ScanIndex(content, p.hash, func(e git.IndexEntry) {
		name, in := bytes.CutPrefix(e.Name, []byte(p.strip))
		if !in || len(name) == 0 {
			return
		}
		add := func(list *[]string) { *list = append(*list, p.below+string(name)) }
		if e.Mode == git.Gitlink {
			add(&t.Links)
		}
		if e.Hushed {
			add(&t.Hushed)
		}
		if hostrun.Means(string(name)) != "" {
			add(&t.Runs)
		}
		switch verdict := s.verdict(name); {
		case verdict == secretfile.Secret || verdict == secretfile.Ask || named(name):
			add(&t.Names)
		case verdict == secretfile.Look:
			add(&t.Small)
		}
	})
}

// proves reports whether an index holds the very content that a file has: who
// put it there has read the file.
func (p indexPlace) proves(tree *beneath.Folder, rel string) (found bool) {
	below, in := strings.CutPrefix(rel, p.below)
	file, err := tree.Read(rel, indexLimit)
	if err != nil || !in {
		return false
	}
	index, err := beneath.ReadIn(p.git, "index", indexLimit)
	if err != nil {
		return false
	}
	blob := append([]byte("blob "+strconv.Itoa(len(file))+"\x00"), file...)
	short, long := sha1.Sum(blob), sha256.Sum256(blob)
	for _, sum := range [][]byte{short[:], long[:]} {
		_ = git.ScanIndex(index, len(sum), func(e git.IndexEntry) {
			found = found || string(e.Name) == p.strip+below && bytes.Equal(e.Sum, sum)
		})
	}
	return found
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
	var t Tracked
	named := s.named()
	for _, place := range places {
		place.read(&t, s, named)
	}
	for _, names := range [][]string{t.Names, t.Small, t.Links, t.Runs, t.Hushed} {
		slices.Sort(names)
	}
	seen.Tracked = t
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
		if at := leadsTo(tree, place); at != "" {
			below := strings.TrimPrefix(path.Dir(place)+"/", "./")
			list = append(list, indexPlace{git: tree.Join(at), hash: max(s.Hash, sha1Size), below: below})
		}
	}
	return list
}

// Indexed gives the indexes that may hold a name of the project: their git
// folders, and the name as it stands there.
func (s Seen) Indexed(rel string) (at []Indexed) {
	for _, place := range s.places {
		if below, in := strings.CutPrefix(rel, place.below); in {
			at = append(at, Indexed{place.id(), place.common(), place.strip + below})
		}
	}
	return at
}

// Indexed is a name in the index of a git folder.
type Indexed struct {
	Git, Common identity.ID // the latter is the repository's, of which Git is a worktree's part
	Name        string
}

// named tells of which names, by their path, it must be known whether they are
// tracked, whatever they hold.
func (s Scope) named() func(name []byte) bool {
	firsts := map[string][]string{}
	for _, list := range [][]string{hostrun.Held(), s.Places} {
		for _, place := range list {
			first, _, _ := strings.Cut(place, "/")
			firsts[first] = append(firsts[first], place)
		}
	}
	return func(name []byte) bool {
		_, last := split(name)
		first, _, _ := bytes.Cut(name, []byte("/"))
		within := func(place string) bool { return pathname.Below(string(name), place) }
		return string(last) == "config" || slices.ContainsFunc(firsts[string(first)], within)
	}
}

// leadsTo is what an entry .git of the project leads to, relative to the
// project; empty when it leads out of it, or through a link.
func leadsTo(tree *beneath.Folder, place string) string {
	if what, err := tree.Look(place); err == nil && what.Kind == beneath.Dir {
		return place
	}
	written, real, err := gitFile(tree, place)
	if err != nil || written != real || !pathname.Below(real, tree.Path()) {
		return ""
	}
	return relative(tree.Path(), real)
}

// sha1Size is the length of git's usual object names, in bytes.
const sha1Size = 20

// hashSize is how long object names are, in bytes.
func hashSize(entries []gitconfig.Entry) int {
	if strings.EqualFold(gitconfig.Last(entries, "extensions.objectformat"), "sha256") {
		return 32
	}
	return sha1Size
}
