package session

import (
	"path/filepath"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/workspace/handover"
)

// places are the git folders of the given folders, of each of which the agent has one of its own. A repository with
// checkouts in several given folders is one place.
func (s *Session) places() (list []handover.Place) {
	for _, folder := range s.given {
		for _, p := range folder.Places {
			at := slices.IndexFunc(list, func(known handover.Place) bool { return known.Outer == p.Outer })
			if at < 0 {
				p.Folder = placeFolder(s.inputs, p.Outer)
				list = append(list, p)
				continue
			}
			for _, t := range p.Trees {
				if !slices.Contains(list[at].Trees, t) {
					list[at].Trees = append(list[at].Trees, t)
				}
			}
		}
	}
	for i := range list {
		for _, m := range s.Launch.Mounts {
			if m.Destination != list[i].Outer && pathname.Below(m.Destination, list[i].Outer) {
				list[i].Within = append(list[i].Within, m.Destination)
			}
		}
	}
	return list
}

// handOver makes the agent's own git folders, as the user's are now. Nothing has started yet.
func (r *running) handOver() (err error) {
	places, tools := r.places(), r.tools
	if len(places) == 0 {
		return nil
	}
	git, env := tools[resolve.ToolGit], tools[resolve.ToolEnv]
	if git == "" {
		return diag.Errorf("give the agent a git folder of its own", "build claudebox anew",
			"its manifest names no git")
	}
	var hidden, held []string
	for _, folder := range r.given {
		for _, rel := range folder.Hidden {
			hidden = append(hidden, filepath.Join(folder.Path, rel))
		}
		for _, rel := range folder.ReadOnly {
			held = append(held, filepath.Join(folder.Path, rel))
		}
	}
	r.git, err = handover.Begin(handover.Request{Places: places, Hidden: hidden, Held: held, Tools: handover.Tools{
		Bwrap: tools[resolve.ToolBwrap], Bash: tools[resolve.ToolBash], Git: git,
		Path: []string{filepath.Dir(git), filepath.Dir(env)}, Seccomp: seccomp.Filter(),
	}})
	return err
}

// endGit hands over for the last time, once all else that the agent made was judged. What did not cross is told.
func (r *running) endGit() {
	final := !slices.ContainsFunc(r.overlaps, func(overlaps bool) bool { return overlaps })
	for _, told := range r.git.End(final) {
		r.gitLines = append(r.gitLines, told.Line())
	}
	r.git = nil
}
