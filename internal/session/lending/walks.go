package lending

import (
	"cmp"
	"sync"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/survey"
)

// Walks are folders of the user's own set-up for agents, as they are walked beside what else a launch prepares, once
// for all that look at what is in them. The zero value has none.
type Walks struct {
	folders []string
	all     func() map[string]project.LentWalk // by canonical path; it waits for them
}

// Walk begins to walk folders. cache and build are those of [Host].
func Walk(folders []string, cache, build string) Walks {
	q := project.LentQuestion{All: true, Cache: cache, Build: build}
	w := Walks{folders, sync.OnceValue(func() map[string]project.LentWalk {
		all := map[string]project.LentWalk{}
		for _, folder := range folders {
			if real, err := beneath.Canonical(folder); err == nil {
				all[real] = project.WalkLent(real, q)
			}
		}
		return all
	})}
	go w.all()
	return w
}

// of returns the walk of a folder, by its canonical path.
func (w Walks) of(folder string) (walk project.LentWalk) {
	if w.all != nil {
		walk = w.all()[folder]
	}
	return walk
}

// Folder returns what was seen of a folder, by its canonical path; nil: it was not walked, or not all that is in it was
// seen. It waits for the walks only where one may be of that folder.
func (w Walks) Folder(name string) *survey.Folder {
	for _, top := range w.folders {
		if rel, below := pathname.Cut(name, top); below {
			if walk := w.of(top); walk.Survey != nil { // it is canonical
				return walk.Listed(cmp.Or(rel, "."))
			}
		}
	}
	return nil
}
