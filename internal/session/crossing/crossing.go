// Package crossing has the git folders of one session: those of the agent's own for the repositories in the folders
// that it may change, and what crosses between them and the user's.
package crossing

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/live"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// Request makes the request of a hand-over for the folders that an agent may change, but for the places. tools are the
// manifest's.
func Request(tools map[string]string, folders ...project.Project) (made handover.Request, err error) {
	if made.Tools, err = Tools(tools); err != nil {
		return made, err
	}
	for _, folder := range folders {
		made.Given = append(made.Given, folder.Path)
		for _, rel := range folder.Hidden {
			made.Hidden = append(made.Hidden, filepath.Join(folder.Path, rel))
		}
		for _, rel := range folder.ReadOnly {
			made.Held = append(made.Held, filepath.Join(folder.Path, rel))
		}
		for _, m := range folder.Mounts {
			isHeld := m.Mode == project.Inner && !hasCheckout(folder, m.Path)
			if isHeld || m.Mode == project.ReadOnly && m.Dir {
				made.Held = append(made.Held, m.Path)
			}
		}
	}
	return made, nil
}

// hasCheckout reports whether a checkout lies in a git folder, as people have them in a bare one.
func hasCheckout(folder project.Project, outer string) bool {
	below := func(at string) bool { return at != outer && pathname.Below(at, outer) }
	return below(folder.Path) || slices.ContainsFunc(folder.Places, func(p handover.Place) bool {
		return p.Outer == outer && slices.ContainsFunc(p.Trees, func(t handover.Tree) bool { return below(t.Path) })
	})
}

// Tools are the programs of a hand-over, of the manifest's.
func Tools(tools map[string]string) (handover.Tools, error) {
	git, env := tools[resolve.ToolGit], tools[resolve.ToolEnv]
	if git == "" {
		return handover.Tools{}, diag.Errorf("give the agent a git folder of its own", diag.Reinstall,
			"its manifest names no git")
	}
	return handover.Tools{
		Bwrap: tools[resolve.ToolBwrap], Bash: tools[resolve.ToolBash], Git: git,
		Path: []string{filepath.Dir(git), filepath.Dir(env)}, Seccomp: seccomp.Filter(),
	}, nil
}

// Places are the git folders of a branch, if the session has one, and of folders, of each of which the agent has one of
// its own. A repository with checkouts in several folders is one place.
func Places(branch *handover.Place, folders []guarded.Folder, kept guarded.Places, mounts []launch.Mount,
) (list []handover.Place) {
	if branch != nil {
		list = append(list, *branch)
	}
	for _, folder := range folders {
		for _, p := range folder.Places {
			at := slices.IndexFunc(list, func(known handover.Place) bool { return known.Outer == p.Outer })
			if at < 0 {
				p.Folder = kept.Place(p.Outer)
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
		list[i].PassOver(handover.Outers(list))
		for _, m := range mounts {
			if m.Destination != list[i].Outer && pathname.Below(m.Destination, list[i].Outer) {
				list[i].Within = append(list[i].Within, m.Destination)
			}
		}
	}
	return list
}

// Git hands over between the git folders of a session.
type Git struct {
	*handover.Session          // nil once it has ended
	Lines             []string // for people, on what did not cross

	request handover.Request
}

// Begin makes the agent's git folders, as the user's are now.
func Begin(r handover.Request, events *live.Events) (*Git, error) {
	r.Crossed = func(outer string, changes []handover.RefChange) {
		for _, c := range changes {
			events.Add(live.Event{
				Kind: live.Commits, What: strings.TrimPrefix(c.Name, "refs/heads/"),
				Why: shown(c.New) + " in " + filepath.Dir(outer),
			})
		}
	}
	session, err := handover.Begin(r)
	if err != nil { // a launch would say why, and does not come to it
		env := filepath.Join(r.Tools.Path[len(r.Tools.Path)-1], "env")
		err = launch.Diagnose(r.Tools.Bwrap, env, profile.TierNone, err)
	}
	return &Git{Session: session, request: r}, err
}

// shown names a commit for people; an empty one is that of a branch that was removed.
func shown(commit string) string {
	const digits = 10
	if commit == "" {
		return "is gone"
	}
	return commit[:min(len(commit), digits)]
}

// Copy copies a file or folder of the agent's, see [handover.Tools.Copy].
func (g *Git) Copy(in *beneath.Folder, from string, to *beneath.Folder, name, but string) error {
	return g.request.Tools.Copy(in, from, to, name, but)
}

// CopyPath is [Git.Copy] by paths, see [handover.Tools.CopyPath].
func (g *Git) CopyPath(from, to string) error { return g.request.Tools.CopyPath(from, to) }

// SayUsers says that a git folder is the user's, and which remotes it has: an agent that was faster than its cover can
// have named them.
func (g *Git) SayUsers(at string) {
	text := "it is yours, made while the session ran; "
	if remotes := g.Remotes(at); remotes != "" {
		text += remotes + "; "
	}
	g.Say(strings.TrimSuffix(at, "/.git"), text+"the agent saw its files alone, and has it whole in the next session")
}

// Remotes says which remotes a git folder has; empty: none.
func (g *Git) Remotes(at string) string {
	list, err := g.request.Tools.Remotes(at)
	switch {
	case err != nil:
		return "its remotes cannot be read: " + diag.Cause(err).Error()
	case len(list) == 0:
		return ""
	}
	const named = 3
	return "its remotes: " + diag.Some(list, named)
}

// Say adds a line on what did not cross, about a path.
func (g *Git) Say(at, text string) { g.Lines = append(g.Lines, "git, "+diag.Name(at)+": "+text) }

// Adopt makes repositories of the agent's ones of the user's, and reports which are. If one is not, a line says why;
// for many there is one. alone reports whether no other session lives at a path.
func (g *Git) Adopt(made []handover.Made, alone func(at string) bool) (yours []bool) {
	g.request.Alone = alone
	const most, named = 5, 3
	var told []handover.Remark
	var not, why []string
	for i, a := range handover.Adopt(g.request, made) {
		yours = append(yours, a.Err == nil)
		told = append(told, a.Told...)
		if a.Err != nil {
			not, why = append(not, filepath.Dir(made[i].Outer)), append(why, diag.Visible(a.Err.Error()))
		}
	}
	if len(not) > most {
		g.Lines = append(g.Lines, fmt.Sprintf("git, %s: the repositories that were made there did not become yours; "+
			"the first one: %s", diag.Some(not, named), why[0]))
		not = nil
	}
	for i, at := range not {
		g.Say(at, "the repository that was made there did not become yours: "+why[i])
	}
	g.tell(told)
	return yours
}

// IsRefused reports whether a repository of the agent's did not become the user's, and has not changed since.
func (g *Git) IsRefused(made handover.Made) bool { return made.Refusal(g.request.Tools) != "" }

// End hands over for the last time, once all else that the agent made was judged; final says that no other session
// lives in the folders. What did not cross is told. A second call does nothing.
func (g *Git) End(final bool) {
	g.tell(g.Session.End(final))
	g.Session = nil
}

// Cancel ends a session whose agent was not started: there is nothing to hand over. A second call does nothing.
func (g *Git) Cancel() {
	g.tell(g.Session.Cancel())
	g.Session = nil
}

func (g *Git) tell(list []handover.Remark) {
	g.Lines = append(g.Lines, handover.Lines(list)...)
}
