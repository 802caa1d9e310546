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
	"claudebox/internal/linux/identity"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/gitindex"
	"claudebox/internal/workspace/hostrun"
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

// indexPlace is a git folder whose index counts.
type indexPlace struct {
	git   string // the git folder's path
	hash  int    // length of object names, in bytes, where its own configuration does not tell
	strip string // what stands before the names above the project
	below string // where in the project the working tree lies: "sub/"
}

// id is the git folder's, wherever it is.
func (p indexPlace) id() identity.ID { return identity.At(unix.AT_FDCWD, p.git) }

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

// indexes reads the indexes of the repositories of a project. What cannot be
// read tracks nothing: what is not known to be tracked is protected.
type indexes struct {
	matters func(name []byte) bool // by the path in its working tree
	small   func(name []byte) bool // the same of those that may hold a token
	Tracked
}

// read adds what one index holds.
func (x *indexes) read(p indexPlace) {
	at, err := beneath.Open(p.git)
	if err != nil {
		return
	}
	defer at.Close()
	content, err := at.Read("index", indexLimit)
	if err != nil {
		return
	}
	if config, err := at.Read("config", configLimit); p.below != "" && err == nil {
		entries, _ := gitconfig.Parse(config)
		p.hash = hashSize(entries)
	}
	// What comes before a fault counts: git reads it, and so may the agent.
	_ = gitindex.Scan(content, p.hash, func(e gitindex.Entry) {
		name := e.Name
		if len(name) <= len(p.strip) || string(name[:len(p.strip)]) != p.strip {
			return
		}
		name = name[len(p.strip):]
		if e.Mode == gitindex.Gitlink {
			x.Links = append(x.Links, p.below+string(name))
		}
		if e.Hushed {
			x.Hushed = append(x.Hushed, p.below+string(name))
		}
		if hostrun.Means(string(name)) != "" {
			x.Runs = append(x.Runs, p.below+string(name))
		}
		if x.matters(name) {
			x.Names = append(x.Names, p.below+string(name))
		} else if x.small(name) {
			x.Small = append(x.Small, p.below+string(name))
		}
	})
}

// proves reports whether an index holds the very content that a file has: who
// put it there has read the file.
func (p indexPlace) proves(tree *beneath.Folder, name string) (found bool) {
	at, err := beneath.Open(p.git)
	if err != nil {
		return false
	}
	defer at.Close()
	rel, in := p.inProject(name)
	file, err := tree.Read(rel, indexLimit)
	if err != nil || !in {
		return false
	}
	index, err := at.Read("index", indexLimit)
	if err != nil {
		return false
	}
	blob := append([]byte("blob "+strconv.Itoa(len(file))+"\x00"), file...)
	short, long := sha1.Sum(blob), sha256.Sum256(blob)
	for _, sum := range [][]byte{short[:], long[:]} {
		_ = gitindex.Scan(index, len(sum), func(e gitindex.Entry) {
			found = found || string(e.Name) == name && bytes.Equal(e.Sum, sum)
		})
	}
	return found
}

// leadsTo is what an entry .git of the project leads to, relative to the
// project; empty when it leads out of it.
func leadsTo(tree *beneath.Folder, place string) string {
	what, err := tree.Look(place)
	switch {
	case err != nil:
		return ""
	case what.Kind == beneath.Dir:
		return place
	case what.Kind != beneath.Regular:
		return ""
	}
	content, _ := tree.Read(place, smallLimit)
	target, ok := strings.CutPrefix(strings.TrimRight(string(content), "\r\n"), "gitdir: ")
	if !ok {
		return ""
	}
	if !path.IsAbs(target) {
		target = tree.Join(path.Dir(place)) + "/" + target
	}
	if git := relative(tree.Path(), path.Clean(target)); !strings.HasPrefix(git, "..") {
		return git
	}
	return ""
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
