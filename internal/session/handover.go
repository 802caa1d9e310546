package session

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/live"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/cover"
	"claudebox/internal/workspace/guard"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/survey"
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
				p.Folder = s.kept().Place(p.Outer)
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
	places := r.places()
	if len(places) == 0 {
		return nil
	}
	request, err := r.handoverRequest()
	if err != nil {
		return err
	}
	request.Places, request.Crossed = places, r.tellCrossed
	r.git, err = handover.Begin(request)
	return err
}

// tellCrossed tells what has crossed to the user's side.
func (r *running) tellCrossed(outer string, changes []handover.RefChange) {
	for _, c := range changes {
		name, commit := strings.TrimPrefix(c.Name, "refs/heads/"), "is gone"
		if c.New != "" {
			commit = c.New[:min(len(c.New), shortCommit)]
		}
		r.events.Add(live.Event{Kind: live.Commits, What: name, Why: commit + " in " + filepath.Dir(outer)})
	}
}

// shortCommit is how many digits name a commit for people.
const shortCommit = 10

// handoverRequest is what a hand-over needs to know, but for the places.
func (s *Session) handoverRequest() (handover.Request, error) {
	return handoverOf(s.Tools, projectsOf(s.given)...)
}

// handoverOf is [Session.handoverRequest] for the manifest's tools and the folders that an agent may change.
func handoverOf(tools map[string]string, folders ...project.Project) (made handover.Request, err error) {
	if made.Tools, err = handoverTools(tools); err != nil {
		return made, err
	}
	for _, folder := range folders {
		for _, rel := range folder.Hidden {
			made.Hidden = append(made.Hidden, filepath.Join(folder.Path, rel))
		}
		for _, rel := range folder.ReadOnly {
			made.Held = append(made.Held, filepath.Join(folder.Path, rel))
		}
	}
	return made, nil
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
		there := slices.ContainsFunc(r.given, func(f guarded.Folder) bool {
			return !f.IsMoved() && pathname.Below(own.Destination, f.Path)
		})
		if !there { // it is a path inside
			continue
		}
		if left, err := os.ReadDir(own.Source); err != nil || len(left) == 0 {
			continue
		}
		// A repository there becomes one of the user's before it is where the user's git looks.
		made := handover.Made{Outer: own.Destination + "/.git", At: filepath.Dir(own.Source) + "/made"}
		made.Folder = r.kept().Place(made.Outer)
		whole := lending.IsFolder(own.Source+"/.git") && r.isAlone() && os.Rename(own.Source+"/.git", made.At) == nil
		if err := r.moveFolder(own.Source, own.Destination); err != nil {
			r.gitLines = append(r.gitLines, "git, "+diag.Name(own.Destination)+": what was made in it is inside only: "+
				diag.Cause(err).Error())
			if whole {
				_ = os.Rename(made.At, own.Source+"/.git") // it is there, or kept beside
			}
			continue
		}
		if whole && !r.adopt(made) {
			_ = os.Rename(made.At, made.Outer) // git is to find none there, see [git.Strangers]; or it is kept
		}
	}
}

// moveFolder moves a folder to where an empty one is, also on another file system.
func (r *running) moveFolder(from, to string) error {
	err := unix.Rename(from, to) // os.Rename takes no folder's place
	if !errors.Is(err, unix.EXDEV) {
		return err
	}
	if there, err := os.ReadDir(to); err != nil || len(there) > 0 {
		return cmp.Or(err, error(unix.ENOTEMPTY))
	}
	cp := exec.Command(filepath.Join(filepath.Dir(r.Tools[resolve.ToolEnv]), "cp"), "-aT", "--", from, to)
	if said, err := cp.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return os.RemoveAll(from)
}

// isAlone reports whether no other session lives in a given folder: its agent could write in what is made there.
func (r *running) isAlone() bool {
	return !slices.ContainsFunc(r.after, func(s *aftermath.Session) bool { return !s.IsAlone() })
}

// adopt makes a repository of the agent's one of the user's, or says why it cannot be.
func (r *running) adopt(made handover.Made) bool {
	request, err := r.handoverRequest()
	var told []handover.Told
	if err == nil {
		request.Places = r.places()
		told, err = handover.Adopt(request, made)
	}
	if err != nil {
		r.gitLines = append(r.gitLines, "git, "+diag.Name(filepath.Dir(made.Outer))+": the repository that was made "+
			"there did not become yours: "+diag.Visible(err.Error()))
	}
	for _, t := range told {
		r.gitLines = append(r.gitLines, t.Line())
	}
	for _, session := range r.after {
		if err == nil {
			session.AddAdopted(made.Outer)
		}
	}
	return err == nil
}

// endGit hands over for the last time, once all else that the agent made was judged. What did not cross is told.
func (r *running) endGit() {
	final := !slices.ContainsFunc(r.overlaps, func(overlaps bool) bool { return overlaps })
	for _, told := range r.git.End(final) {
		r.gitLines = append(r.gitLines, told.Line())
	}
	r.git = nil
}

// guardFolder begins to hold back what the agent makes in a folder. session is a name that no other session has.
func (r *running) guardFolder(folder guarded.Folder, session string) (*guard.Guard, error) {
	held, seen := r.kept().Held(folder.Project), folder.Seen
	var folders []string
	for _, f := range seen.Folders() {
		folders = append(folders, f.Rel)
	}
	return guard.Open(guard.Request{
		Path: folder.Path, Held: held, Inside: guard.Inside(filepath.Base(held)), Session: session, Folders: folders,
		Skipped: project.Filling(), Git: seen.Git,
		Known: func(rel string) bool {
			below := func(at string) bool { return pathname.Below(at, rel) }
			return slices.ContainsFunc(folder.Tracked, below) ||
				slices.ContainsFunc(seen.Files, func(f survey.File) bool { return below(f.Rel) }) ||
				slices.ContainsFunc(seen.Skipped, below)
		},
		Copy: copyWith(r.Tools),
		Ask: func() map[string]bool {
			names := map[string]bool{}
			for _, at := range r.git.Listed(hostrun.Unasked) {
				if rel, in := pathname.Cut(at, folder.Path); in {
					names[rel] = true
				}
			}
			return names
		},
		Told: func(rel string) {
			r.events.Add(live.Event{Kind: live.Held, What: filepath.Join(folder.Path, rel)})
			if path.Base(rel) != ".git" { // git takes that for a repository as it is
				r.git.Exclude(filepath.Join(folder.Path, rel))
			}
		},
		Cover: func(rel string) error {
			at := folder.In(filepath.Join(folder.Path, rel))
			if lending.IsFolder(filepath.Join(folder.Path, rel)) {
				return cover.Now(r.process, cover.File{Path: at, Folder: true, Remake: remakes[project.Hidden]})
			}
			return cover.Now(r.process, cover.File{Path: at}) // it only says where the repository is
		},
		Apart: func(rel string) {
			if r.lost.note(&r.lost.apart, rel, mostUncovered) {
				r.lost.say(r.Caller.Stderr, diag.Name(rel)+
					" cannot be held back, as it is on a file system of its own: your tools may obey it")
			}
		},
		Lost: r.tellUnguarded,
	})
}

// adoptRepositories makes the repositories that agents made in the given folders, and that were held back, ones of the
// user's. What cannot be is held back still, and comes out as none. While another session lives there nothing is
// adopted: its agent could write in what is the user's.
func (r *running) adoptRepositories() {
	for i, folder := range r.given[:min(len(r.given), len(r.after))] { // fewer if the launch failed
		session := r.after[i]
		if !session.IsAlone() {
			continue
		}
		root, err := beneath.Open(folder.Path)
		if err != nil {
			continue // which the review tells
		}
		folders := session.Held()
		for _, held := range folders {
			guard.Untangle(root, held)
		}
		for _, held := range folders {
			for _, repository := range guard.Repositories(root, held) {
				r.adoptHeld(root, repository)
			}
		}
		root.Close()
	}
}

// adoptHeld makes a repository that is held back one of the user's. If that cannot be, it is held back still.
func (r *running) adoptHeld(root *beneath.Folder, repository guard.Repository) {
	outer := root.Join(repository.Rel)
	back, drop, err := repository.Unlink(root)
	if err != nil {
		return
	}
	made := handover.Made{Outer: outer, At: repository.At, Folder: r.kept().Place(outer)}
	if r.adopt(made) {
		_ = drop() // a link that leads nowhere, else
	} else if err := back(); err != nil {
		r.gitLines = append(r.gitLines, "git, "+diag.Name(outer)+": it is kept in "+diag.Name(made.At)+": "+
			diag.Cause(err).Error())
	}
}

// copyWith returns what copies a thing of the agent's; nil: there are no programs for it.
func copyWith(tools map[string]string) func(from, to string) error {
	programs, err := handoverTools(tools)
	if err != nil {
		return nil
	}
	return programs.Copy
}

// tellUnguarded ends a session in which something cannot be held back any more.
func (r *running) tellUnguarded(err error) {
	r.runner.Signals.End()
	if r.lost.note(&r.lost.times, "", mostUncovered) {
		r.lost.say(r.Caller.Stderr, "what your tools would obey unasked cannot be held back any more: "+
			diag.Visible(err.Error())+"; the session ends")
	}
}
