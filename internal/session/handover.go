package session

import (
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/workspace/handover"
)

// places are the git folders of the given folders, of each of which the agent has one of its own. A repository with
// checkouts in several given folders is one place.
func (s *Session) places() (list []handover.Place) {
	if s.branch != nil {
		list = append(list, s.branch.Place())
	}
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
	for _, own := range r.submodules() {
		if err := os.MkdirAll(own.Source, 0o700); err != nil {
			return diag.Wrap("make "+own.Source, err, "make its folder writable for you")
		}
	}
	places, tools := r.places(), r.tools
	if len(places) == 0 {
		return nil
	}
	programs, err := handoverTools(tools)
	if err != nil {
		return err
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
	r.git, err = handover.Begin(handover.Request{Places: places, Hidden: hidden, Held: held, Tools: programs})
	return err
}

// handoverTools are the programs of a hand-over, of the manifest's.
func handoverTools(tools map[string]string) (handover.Tools, error) {
	git, env := tools[resolve.ToolGit], tools[resolve.ToolEnv]
	if git == "" {
		return handover.Tools{}, diag.Errorf("give the agent a git folder of its own", "build claudebox anew",
			"its manifest names no git")
	}
	return handover.Tools{
		Bwrap: tools[resolve.ToolBwrap], Bash: tools[resolve.ToolBash], Git: git,
		Path: []string{filepath.Dir(git), filepath.Dir(env)}, Seccomp: seccomp.Filter(),
	}, nil
}

// submodules are the mounts of the agent's own folders in the place of submodules that are not checked out.
func (s *Session) submodules() []launch.Mount {
	own := filepath.Join(s.Instance.Dir, handover.Folder)
	return slices.DeleteFunc(slices.Clone(s.Launch.Mounts), func(m launch.Mount) bool {
		return !pathname.Below(m.Source, own) || filepath.Base(m.Source) != "folder"
	})
}

// bringSubmodules puts what the agent made in such folders where it lies inside, to be judged there. What the user has
// put there meanwhile stays, and so does the agent's, for the next session.
func (r *running) bringSubmodules() {
	for _, own := range r.submodules() {
		there := slices.ContainsFunc(r.given, func(f given) bool {
			return !f.moved() && pathname.Below(own.Destination, f.Path)
		})
		if !there { // it is a path inside
			continue
		}
		if left, err := os.ReadDir(own.Source); err != nil || len(left) == 0 {
			continue
		}
		if err := unix.Rename(own.Source, own.Destination); err != nil { // os.Rename takes no folder's place
			r.gitLines = append(r.gitLines, "git, "+diag.Name(own.Destination)+": what was made in it is inside only: "+
				diag.Cause(err).Error())
		}
	}
}

// endGit hands over for the last time, once all else that the agent made was judged. What did not cross is told.
func (r *running) endGit() {
	final := !slices.ContainsFunc(r.overlaps, func(overlaps bool) bool { return overlaps })
	for _, told := range r.git.End(final) {
		r.gitLines = append(r.gitLines, told.Line())
	}
	r.git = nil
}
