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

// indexLimit is how large a git index may be, in bytes: it has a million files.
const indexLimit = 128 << 20

// Tracked is what git's indexes hold, as far as the names matter here: sorted lists of paths relative to the project.
type Tracked struct {
	Names []string
	Small []string // those that matter only for a token that they may hold
	Links []string // repositories in the working tree, whose configuration git obeys
	Runs  []string // what the host's tools run
	// Hushed are files of which git shows no change.
	Hushed []string
	Empty  []string // those that may be secrets by their names, and are empty in an index
}

// All returns the names that matter for any reason.
func (t Tracked) All() []string { return slices.Concat(t.Names, t.Small) }

// Without returns all but some names.
func (t Tracked) Without(names []string) Tracked {
	if len(names) == 0 {
		return t
	}
	out := func(name string) bool { return slices.Contains(names, name) }
	t.Names, t.Small = slices.DeleteFunc(slices.Clone(t.Names), out), slices.DeleteFunc(slices.Clone(t.Small), out)
	return t
}

// Has reports whether a path is tracked, or something below it.
func (t Tracked) Has(rel string) bool {
	if _, found := slices.BinarySearch(t.Names, rel); found {
		return true
	}
	at, found := slices.BinarySearch(t.Names, rel+"/")
	return found || at < len(t.Names) && strings.HasPrefix(t.Names[at], rel+"/")
}

// indexPlace is a git folder whose index counts. If that cannot be read, nothing is tracked by it, and is therefore
// protected.
type indexPlace struct {
	git   string // the git folder's path
	hash  int    // length of object names, in bytes, where its own configuration does not tell
	strip string // what stands before the names above the project
	below string // where in the project the working tree lies: "sub/"
}

// id returns the identity of the git folder, wherever it is.
func (p indexPlace) id() identity.ID { return identity.At(unix.AT_FDCWD, p.git) }

// common returns the identity of the repository, which is the same in each worktree.
func (p indexPlace) common() identity.ID {
	if above := path.Dir(p.git); path.Base(above) == "worktrees" {
		p.git = path.Dir(above)
	}
	return p.id()
}

// inProject returns those names of the index that lie in the project, as paths in it.
func (p indexPlace) inProject(names []string) (rels []string) {
	for _, name := range names {
		if rest, in := strings.CutPrefix(name, p.strip); in && rest != "" {
			rels = append(rels, p.below+rest)
		}
	}
	return rels
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

// read adds to t the names in the index that matter.
func (p indexPlace) read(t *Tracked, s Scope, named func(name []byte) bool) {
	content, err := beneath.ReadIn(p.git, "index", indexLimit)
	if err != nil {
		return
	}
	if config, err := beneath.ReadIn(p.git, "config", configLimit); p.below != "" && err == nil {
		entries, _ := gitconfig.Parse(config)
		p.hash = git.HashSize(entries)
	}
	if _, ok := git.CheckIndex(content, p.hash); !ok {
		return
	}
	for e := range git.ScanIndex(content, p.hash) {
		name, in := bytes.CutPrefix(e.Name, []byte(p.strip))
		if !in || len(name) == 0 {
			continue
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
		verdict := s.verdict(name)
		byName := verdict == secretfile.Secret || verdict == secretfile.Ask
		if byName && isBlob(e.Sum, nil) {
			add(&t.Empty)
		}
		switch {
		case byName || named(name):
			add(&t.Names)
		case verdict == secretfile.Look:
			add(&t.Small)
		}
	}
}

// proves reports whether an index holds the very content of a file: who added that has read the file.
func (p indexPlace) proves(tree *beneath.Folder, rel string) bool {
	below, in := strings.CutPrefix(rel, p.below)
	file, err := tree.Read(rel, indexLimit)
	if err != nil || !in {
		return false
	}
	index, err := beneath.ReadIn(p.git, "index", indexLimit)
	if err != nil {
		return false
	}
	for _, size := range []int{sha1.Size, sha256.Size} {
		for e := range git.ScanIndex(index, size) {
			if string(e.Name) == p.strip+below && isBlob(e.Sum, file) {
				return true
			}
		}
	}
	return false
}

// isBlob reports whether git calls a file with this content by an object name.
func isBlob(sum, content []byte) bool {
	blob := append([]byte("blob "+strconv.Itoa(len(content))+"\x00"), content...)
	short, long := sha1.Sum(blob), sha256.Sum256(blob)
	return bytes.Equal(sum, short[:]) || bytes.Equal(sum, long[:])
}

// Left is a file of an index, and what it held when a session had ended.
type Left struct{ Name, Sum string }

// SumOf returns a hash of a file's content; empty if it cannot be read, or has more than 16 MiB.
func SumOf(tree *beneath.Folder, rel string) string {
	const limit = 16 << 20
	content, err := tree.Read(rel, limit)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(content)
	return string(sum[:])
}

// readIndexes reads the indexes of the project's repositories, unless nothing of them has changed since before.
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
	for _, names := range [][]string{t.Names, t.Small, t.Links, t.Runs, t.Hushed, t.Empty} {
		slices.Sort(names)
	}
	seen.Tracked = t
}

// indexPlaces returns the git folders whose indexes count here.
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
			list = append(list, indexPlace{git: tree.Join(at), hash: max(s.Hash, sha1.Size), below: below})
		}
	}
	return list
}

// ByIndex returns names of the project as the indexes have them that may hold them: by the identity of the git folder
// with the index, or by that of the repository, which several worktrees share.
func (s Seen) ByIndex(rels []string, repository bool) map[identity.ID][]string {
	names := map[identity.ID][]string{}
	for _, place := range s.places {
		id := place.id()
		if repository {
			id = place.common()
		}
		for _, rel := range rels {
			if below, in := strings.CutPrefix(rel, place.below); in {
				names[id] = append(names[id], place.strip+below)
			}
		}
	}
	return names
}

// named returns a function that reports, for the path of a file, whether it must be known if that is tracked, whatever
// the file holds.
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

// leadsTo returns the git folder of an entry .git, relative to the project; empty if it lies outside of the project, or
// behind a link.
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
