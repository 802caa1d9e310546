package handover

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/pathname"
)

// Place is one repository of the user's of which the agent has one of its own.
type Place struct {
	Outer  string // the repository's common git folder: canonical, on the host and inside
	Folder string // claudebox's own folder for the place; the agent sees only what [Place.Inner] names
	Trees  []Tree // the checkouts that the agent is given; at least one
	// Within lists paths inside of Outer at which something else is mounted: other places, or a checkout.
	Within []string
	// Branch is the branch of a session that has a checkout of its own. Then only branches cross, and nothing of a
	// checkout: see [decision.onBranch]. Empty: the agent works in the user's checkout.
	Branch string
	Start  string // the commit at which Branch begins, if it is not there
	// Modules are submodules of a branch's checkout from which commits cross.
	Modules []Module
	// Own is the repository of the project itself: without it there is no session. Of another one that git cannot read,
	// the agent sees nothing.
	Own bool
	// Key is what the agent's own git folder knows the repository by; empty: its path.
	Key string
	// Passed are patterns of gitignore(5) by which git inside passes over bare repositories of the user's in a
	// checkout: it would add the agent's own there as files.
	Passed []string
	// Secrets are names below Outer that are not copied: they hold what is secret.
	Secrets []string

	inner string // where the agent's own is; empty: in Folder
}

// Tree is one checkout of a repository.
type Tree struct {
	Rel  string // its git folder, relative to the place's Outer: "." or "worktrees/NAME"
	Path string // its working tree; canonical
}

// PassOver notes which of the user's git folders git inside passes over.
func (p *Place) PassOver(outers []string) {
	for _, outer := range outers {
		for _, t := range p.Trees {
			rel, in := pathname.Cut(outer, t.Path)
			inGit := slices.Contains(strings.Split(rel, "/"), ".git")
			if p.Branch == "" && in && rel != "" && outer != p.Outer && !inGit {
				p.Passed = append(p.Passed, "/"+escape(rel))
			}
		}
	}
}

// Folder is the folder of an instance that holds the folders of places.
const Folder = "git"

// Name returns a short name for a path, as that of a git folder for [Place.Folder]: 16 hex digits.
func Name(outer string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(outer)))[:16] }

// Inner is the agent's own git folder, on the host.
func (p Place) Inner() string { return cmp.Or(p.inner, p.Folder+"/inner") }

// Shared is where the user's objects lie inside.
func (p Place) Shared() string { return "/run/claudebox/git/" + cmp.Or(p.Key, Name(p.Outer)) }

// Mount is a folder of the user's that is mounted for a place, read-only.
type Mount struct{ Source, Destination string }

// Objects is the mount of the user's objects.
func (p Place) Objects() Mount { return Mount{p.Outer + "/objects", p.Shared() + "/objects"} }

// dir is the git folder of a checkout, on the host and inside.
func (p Place) dir(t Tree) string { return path.Join(p.Outer, t.Rel) }

// points are the folders that must exist in the inner one, for something to be mounted there.
func (p Place) points() (list []string) {
	for _, at := range p.Within {
		if rel, below := pathname.Cut(at, p.Outer); below && rel != "" {
			list = append(list, rel)
		}
	}
	return list
}

// Outers lists the user's git folders of places.
func Outers(places []Place) (list []string) {
	for _, p := range places {
		list = append(list, p.Outer)
	}
	return list
}
