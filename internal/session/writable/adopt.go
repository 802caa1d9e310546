package writable

import (
	"path/filepath"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/handover"
)

// adopt makes repositories of the agent's ones of the user's, and reports which are.
func (f *Folders) adopt(made ...handover.Made) (yours []bool) {
	yours = f.Git.Adopt(made)
	for i, m := range made {
		for _, review := range f.reviews {
			if yours[i] {
				review.AddAdopted(m.Outer)
			}
		}
	}
	return yours
}

// made is a repository of the agent's that is to become one of the user's.
func (f *Folders) made(outer, at string) handover.Made {
	return handover.Made{Outer: outer, At: at, Folder: f.Kept.Place(outer)}
}

// adoptRepositories makes the repositories that agents made in the folders, and that were held back, ones of the
// user's. What cannot be is held back still, and comes out as none; it is not tried again before it changes. While
// another session lives there nothing is adopted: its agent could write in what is the user's.
func (f *Folders) adoptRepositories() {
	var list []handover.Made
	var links []link
	for i, review := range f.reviews { // fewer than folders if the launch failed
		root, err := beneath.Open(f.List[i].Path)
		if err != nil {
			continue // which the review tells
		}
		defer root.Close()
		folders := review.Held()
		for _, held := range folders {
			guard.Untangle(root, held)
		}
		for _, held := range folders {
			for _, repository := range guard.Repositories(root, held) {
				made := f.made(root.Join(repository.Rel), repository.At)
				if !review.IsAloneAt(filepath.Dir(made.Outer)) || f.Git.IsRefused(made) {
					continue
				}
				made.Inside, _ = root.Readlink(repository.Rel) // else it has no link
				made.Held = heldWith(made, held)
				if back, drop, err := repository.Unlink(root); err == nil {
					list, links = append(list, made), append(links, link{back, drop})
				}
			}
		}
	}
	for i, isYours := range f.adopt(list...) {
		if isYours {
			_ = links[i].drop() // a link that leads nowhere, else
		} else if err := links[i].back(); err != nil {
			f.Git.Say(list[i].Outer, "it is kept in "+diag.Name(list[i].At)+": "+diag.Cause(err).Error())
		}
	}
}

// heldWith is the folder of what was held back with a repository, and where it was inside, as that was there.
func heldWith(made handover.Made, held string) (m handover.Mount) {
	if rel, in := pathname.Cut(made.At, held); in {
		m.Source, m.Destination = held, strings.TrimSuffix(made.Inside, "/"+rel)
	}
	return m
}

// link puts the link of a repository back, or drops it for good.
type link struct{ back, drop func() error }
