package writable

import (
	"path/filepath"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/session/guarded"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/handover"
)

// adopt makes repositories of the agent's ones of the user's, and reports which are.
func (f *Folders) adopt(made ...handover.Made) (yours []bool) {
	yours = f.Git.Adopt(made, func(at string) bool {
		in := func(f guarded.Folder) bool { return pathname.Below(at, f.Path) }
		i := slices.IndexFunc(f.List[:len(f.reviews)], in)
		return i >= 0 && f.reviews[i].IsAloneAt(at)
	})
	for i, m := range made {
		if yours[i] {
			f.ending.Yours = true
			f.isUsers(m.Outer)
		}
	}
	return yours
}

// isUsers notes a git folder that is the user's.
func (f *Folders) isUsers(at string) {
	for _, review := range f.reviews {
		review.AddAdopted(at)
	}
}

// made is a repository of the agent's that is to become one of the user's.
func (f *Folders) made(outer, at string) handover.Made {
	return handover.Made{Outer: outer, At: at, Folder: f.Kept.Place(outer)}
}

// adoptRepositories makes the repositories that agents made in the folders, and that were held back, ones of the
// user's. What cannot be is held back still, and comes out as none; it is not tried again before it changes. While
// another session lives there nothing is adopted: its agent could write in what is the user's.
func (f *Folders) adoptRepositories() {
	if f.ending == nil {
		return
	}
	var list []handover.Made
	var links []link
	roots := make([]*beneath.Folder, len(f.reviews)) // fewer than folders if the launch failed
	each := func(do func(root *beneath.Folder, review *aftermath.Session, held string)) {
		for i, review := range f.reviews {
			if roots[i] != nil {
				for _, held := range review.Held() {
					do(roots[i], review, held)
				}
			}
		}
	}
	for i := range roots {
		if root, err := beneath.Open(f.List[i].Path); err == nil { // else the review tells it
			defer root.Close()
			roots[i] = root
		}
	}
	each(func(root *beneath.Folder, review *aftermath.Session, held string) {
		guard.Untangle(root, held, func(rel string) bool { return review.IsAloneAt(root.Join(rel)) })
	})
	each(func(root *beneath.Folder, review *aftermath.Session, held string) {
		for _, repository := range guard.Repositories(root, held) {
			made := f.made(root.Join(repository.Rel), repository.At)
			if !review.IsAloneAt(filepath.Dir(made.Outer)) || f.Git.IsRefused(made) {
				continue
			}
			text, _ := root.Readlink(repository.Rel) // else it has no link
			made.Inside = guard.InsideOf(text)
			if back, drop, err := repository.Unlink(root); err == nil {
				list, links = append(list, made), append(links, link{back, drop})
			}
		}
	})
	if len(list) == 0 {
		return
	}
	for i, isYours := range f.adopt(list...) {
		if isYours {
			_ = links[i].drop() // a link that leads nowhere, else
		} else if err := links[i].back(); err != nil {
			f.Git.Say(list[i].Outer, "it is kept in "+diag.Name(list[i].At)+": "+diag.Cause(err).Error())
			f.isUsers(list[i].Outer) // what has come there meanwhile: nothing runs inside any more
		}
	}
}

// link puts the link of a repository back, or drops it for good.
type link struct{ back, drop func() error }
