package project

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/beneath"
	"claudebox/internal/gitconfig"
	"claudebox/internal/gitindex"
)

// indexLimit is what a git index may have, in bytes: a million files.
const indexLimit = 128 << 20

// Tracked is what git's indexes hold of the names that matter here. Paths are
// relative to the project, and in order.
type Tracked struct {
	Names []string
	Links []string // repositories in the working tree, whose configuration git obeys
}

// Has tells whether a place is tracked, or something below it.
func (t Tracked) Has(rel string) bool {
	at, found := slices.BinarySearch(t.Names, rel)
	if found {
		return true
	}
	at, found = slices.BinarySearch(t.Names, rel+"/")
	return found || at < len(t.Names) && strings.HasPrefix(t.Names[at], rel+"/")
}

// indexes reads the indexes of the repositories of a project. What cannot be
// read tracks nothing: what is not known to be tracked is protected.
type indexes struct {
	matters func(name []byte) bool // by the path from the project
	Tracked
}

// read adds what one index holds. at and git are its git folder, strip is what
// stands before its names that is above the project, below where in the
// project its working tree lies.
func (x *indexes) read(at *beneath.Folder, git string, hashSize int, strip, below string) {
	content, err := at.Read(path.Join(git, "index"), indexLimit)
	if err != nil {
		return
	}
	// What comes before a fault counts: git reads it, and so may the agent.
	_ = gitindex.Scan(content, hashSize, func(name []byte, mode uint32) {
		if len(name) <= len(strip) || string(name[:len(strip)]) != strip {
			return
		}
		name = name[len(strip):]
		if mode == gitindex.Gitlink {
			x.Links = append(x.Links, below+string(name))
		}
		if x.matters(name) {
			x.Names = append(x.Names, below+string(name))
		}
	})
}

// nested adds the index of the repository at an entry .git of the project.
func (x *indexes) nested(tree *beneath.Folder, place string) {
	git := place
	if what, err := tree.Look(place); err == nil && what.Kind == beneath.Regular {
		content, _ := tree.Read(place, smallLimit)
		target, ok := strings.CutPrefix(strings.TrimRight(string(content), "\r\n"), "gitdir: ")
		if !ok {
			return
		}
		if !path.IsAbs(target) {
			target = tree.Join(path.Dir(place)) + "/" + target
		}
		if git = relative(tree.Path(), path.Clean(target)); strings.HasPrefix(git, "..") {
			return
		}
	}
	config, _ := tree.Read(path.Join(git, "config"), configLimit)
	entries, _ := gitconfig.Parse(config)
	x.read(tree, git, hashSize(entries), "", path.Dir(place)+"/")
}

func (x *indexes) sorted() Tracked {
	slices.Sort(x.Names)
	slices.Sort(x.Links)
	return x.Tracked
}

// hashSize is how long object names are, in bytes.
func hashSize(entries []gitconfig.Entry) int {
	if strings.EqualFold(gitconfig.Last(entries, "extensions.objectformat"), "sha256") {
		return 32
	}
	return 20
}
