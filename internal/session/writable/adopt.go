package writable

import (
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/handover"
)

// adopt makes a repository of the agent's one of the user's, and reports whether it is.
func (f *Folders) adopt(made handover.Made) bool {
	made.Folder = f.Kept.Place(made.Outer)
	if !f.Git.Adopt(made) {
		return false
	}
	for _, review := range f.reviews {
		review.AddAdopted(made.Outer)
	}
	return true
}

// adoptRepositories makes the repositories that agents made in the folders, and that were held back, ones of the
// user's. What cannot be is held back still, and comes out as none. While another session lives there nothing is
// adopted: its agent could write in what is the user's.
func (f *Folders) adoptRepositories() {
	for i, review := range f.reviews { // fewer than folders if the launch failed
		if !review.IsAlone() {
			continue
		}
		root, err := beneath.Open(f.List[i].Path)
		if err != nil {
			continue // which the review tells
		}
		folders := review.Held()
		for _, held := range folders {
			guard.Untangle(root, held)
		}
		for _, held := range folders {
			for _, repository := range guard.Repositories(root, held) {
				f.adoptHeld(root, repository)
			}
		}
		root.Close()
	}
}

// adoptHeld makes a repository that is held back one of the user's. If that cannot be, it is held back still.
func (f *Folders) adoptHeld(root *beneath.Folder, repository guard.Repository) {
	outer := root.Join(repository.Rel)
	back, drop, err := repository.Unlink(root)
	if err != nil {
		return
	}
	if f.adopt(handover.Made{Outer: outer, At: repository.At}) {
		_ = drop() // a link that leads nowhere, else
	} else if err := back(); err != nil {
		f.Git.Say(outer, "it is kept in "+diag.Name(repository.At)+": "+diag.Cause(err).Error())
	}
}
