package lending

import (
	"sync"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/survey"
)

// Walks are folders of the user's own set-up for agents, as they are walked beside what else a launch prepares, once
// for all that look at what is in them. The zero value has none.
type Walks struct {
	all func() map[string]project.LentWalk // by canonical path; it waits for them
}

// Walk begins to walk folders. cache and build are those of [Host].
func Walk(folders []string, cache, build string) Walks {
	q := project.LentQuestion{All: true, Cache: cache, Build: build}
	w := Walks{sync.OnceValue(func() map[string]project.LentWalk {
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

// Files returns the files in a folder, by its canonical path, if it was walked.
func (w Walks) Files(folder string) (files []survey.File, walked bool) {
	if w.all == nil {
		return nil, false
	}
	for top, walk := range w.all() {
		if rel, below := pathname.Cut(folder, top); below && walk.Survey != nil {
			return walk.FilesIn(rel)
		}
	}
	return nil, false
}
