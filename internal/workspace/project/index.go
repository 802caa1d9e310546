package project

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // git's
	"crypto/sha256"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
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
	Blobs []Blob   // those that may be secrets by their names
	Held  []Blob   // what the host executes or obeys, by the built-in lists or by what git's configuration names
}

// Blob is a file of an index, and git's hash of its content there.
type Blob struct{ Name, Sum string }

// holds reports whether an index has a file that may be a secret with this content.
func (t Tracked) holds(rel string, content []byte) bool {
	at, _ := slices.BinarySearchFunc(t.Blobs, Blob{Name: rel}, compareBlobs)
	for ; at < len(t.Blobs) && t.Blobs[at].Name == rel; at++ {
		if isBlob(t.Blobs[at].Sum, content) {
			return true
		}
	}
	return false
}

func compareBlobs(a, b Blob) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Sum, b.Sum))
}

// Apart returns the files that the host executes or obeys and that an index has with a content which none had before,
// and which the file itself has not: the next checkout writes it there.
func (t Tracked) Apart(before Tracked, tree *beneath.Folder) (rels []string) {
	for _, b := range t.Held {
		if _, was := slices.BinarySearchFunc(before.Held, b, compareBlobs); was {
			continue
		}
		if content, err := tree.Read(b.Name, indexLimit); err != nil || !isBlob(b.Sum, content) {
			rels = append(rels, b.Name)
		}
	}
	return slices.Compact(rels)
}

// Edited returns files that may be secrets and are tracked, but hold what no index has: hashes of their content,
// as [Memory.Had] takes them.
func (t Tracked) Edited(tree *beneath.Folder) map[string]string {
	sums := map[string]string{}
	for _, b := range t.Blobs {
		if content, err := tree.Read(b.Name, secretfile.Limit); err == nil && !t.holds(b.Name, content) {
			sums[b.Name] = sumOf(content)
		}
	}
	return sums
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return string(sum[:])
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

// Has reports whether a path is tracked, or something below it that matters not for a token alone.
func (t Tracked) Has(rel string) bool {
	for _, list := range [][]string{t.Names, t.Small} {
		if _, found := slices.BinarySearch(list, rel); found {
			return true
		}
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
func (p indexPlace) read(t *Tracked, s Scope, named func(name string) bool) {
	content, err := beneath.ReadIn(p.git, "index", indexLimit)
	if err != nil {
		return
	}
	if config, err := beneath.ReadIn(p.git, "config", configLimit); p.below != "" && err == nil {
		entries, _ := gitconfig.Parse(config)
		p.hash = git.HashSize(entries)
	}
	for e := range git.ScanIndex(content, p.hash) {
		name, in := strings.CutPrefix(string(e.Name), p.strip)
		if !in || name == "" {
			continue
		}
		rel := p.below + name // all lists share it
		add := func(list *[]string) { *list = append(*list, rel) }
		if e.Mode == git.Gitlink {
			add(&t.Links)
		}
		if hostrun.Means(name) != "" {
			add(&t.Runs)
		}
		verdict := s.verdict(rel)
		byName := verdict == secretfile.Secret || verdict == secretfile.Suspect
		if byName {
			t.Blobs = append(t.Blobs, Blob{rel, string(e.Sum)})
		}
		held := named(name)
		if held && e.Mode&unix.S_IFMT == unix.S_IFREG && !isOfRepository(name) {
			t.Held = append(t.Held, Blob{rel, string(e.Sum)})
		}
		switch {
		case byName || held:
			add(&t.Names)
		case verdict == secretfile.Ordinary:
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
			if string(e.Name) == p.strip+below && isBlob(string(e.Sum), file) {
				return true
			}
		}
	}
	return false
}

// isBlob reports whether git calls a file with this content by an object name.
func isBlob(sum string, content []byte) bool {
	blob := append([]byte("blob "+strconv.Itoa(len(content))+"\x00"), content...)
	if len(sum) == sha1.Size {
		short := sha1.Sum(blob)
		return sum == string(short[:])
	}
	return sum == sumOf(blob)
}

// readIndexes reads the indexes of the project's repositories, unless nothing of them has changed since before.
func (s Scope) readIndexes(tree *beneath.Folder, seen, before *Seen) {
	places := s.indexPlaces(tree, seen.Git)
	s.Unmade = nil
	seen.places, seen.scope, seen.indexes = places, string(cachefile.Encode(s)), stampsOf(places)
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
	for _, names := range [][]string{t.Names, t.Small, t.Links, t.Runs} {
		slices.Sort(names)
	}
	slices.SortFunc(t.Blobs, compareBlobs)
	slices.SortFunc(t.Held, compareBlobs)
	seen.Tracked = t
}

// entered returns the folders that tools fill, by their names, in which an index has files. known is what an earlier
// look saw, or nil.
func (s Scope) entered(tree *beneath.Folder, seen Seen, known *Seen) (folders []string) {
	places := s.indexPlaces(tree, seen.Git)
	if known != nil && slices.Equal(stampsOf(places), known.indexes) && slices.Equal(seen.Git, known.Git) {
		return known.entered
	}
	for _, place := range places {
		for _, name := range place.parts() {
			index, _ := beneath.ReadIn(place.git, name, indexLimit)
			folders = append(folders, place.filledIn(index)...)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// parts returns the names of the index, and of the files that it may be split into.
func (p indexPlace) parts() []string {
	parts := []string{"index"}
	at, err := beneath.Open(p.git)
	if err != nil {
		return parts
	}
	defer at.Close()
	const most = 10_000
	names, _ := at.Names(".", most)
	for _, name := range names {
		if strings.HasPrefix(name, "sharedindex.") {
			parts = append(parts, name)
		}
	}
	return parts
}

// filledIn returns the folders that tools fill, by their names, in which an index has files.
func (p indexPlace) filledIn(index []byte) (folders []string) {
	var last string
	for _, size := range []int{sha1.Size, sha256.Size} { // which it is, the configuration says
		for e := range git.ScanIndex(index, size) {
			folder, _ := split(string(e.Name))
			rel, in := strings.CutPrefix(folder, p.strip)
			if !in || folder == last {
				continue
			}
			last = folder
			for at := p.below + rel; at != "." && at != "/"; at = path.Dir(at) {
				if slices.Contains(unwalked, path.Base(at)) {
					folders = append(folders, at)
				}
			}
		}
	}
	return folders
}

func stampsOf(places []indexPlace) (stamps []beneath.Stamp) {
	for _, place := range places {
		stamps = append(stamps, place.stamp())
	}
	return stamps
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

// named returns a function that reports, for the path of a file, whether it must be known if that is tracked, whatever
// the file holds.
func (s Scope) named() func(name string) bool {
	firsts := map[string][]string{}
	for _, list := range [][]string{hostrun.Held(), s.Places} {
		for _, place := range list {
			first, _, _ := strings.Cut(place, "/")
			firsts[first] = append(firsts[first], place)
		}
	}
	return func(name string) bool {
		_, last := split(name)
		first, _, _ := strings.Cut(name, "/")
		within := func(place string) bool { return pathname.Below(name, place) }
		return isOfRepository(last) || slices.ContainsFunc(firsts[first], within)
	}
}

// isOfRepository reports whether a file may be one of a repository that git has the files of, by its name.
func isOfRepository(name string) bool {
	_, last := split(name)
	return last == "config" || last == "HEAD"
}

// leadsTo returns the git folder of an entry .git, relative to the project; empty if it lies outside of the project, or
// behind a link.
func leadsTo(tree *beneath.Folder, place string) string {
	if what, err := tree.Look(place); err == nil && what.Kind == beneath.Dir {
		return place
	}
	written, real, err := git.ReadFile(tree, place)
	if err != nil || written != real || !pathname.Below(real, tree.Path()) {
		return ""
	}
	return relative(tree.Path(), real)
}
