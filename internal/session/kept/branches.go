package kept

import (
	"errors"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/session/crossing"
	"claudebox/internal/session/folders"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/branch"
	"claudebox/internal/workspace/handover"
	"claudebox/internal/workspace/project"
)

// Branch is a branch whose checkout is kept.
type Branch = branch.Kept

// Branches are the branches of the caller's repository that sessions work on.
type Branches struct{ request branch.Request }

// FindBranches finds the caller's repository.
func FindBranches(c planning.Caller) (b Branches, err error) {
	asked, err := planning.NewCall(c, planning.Options{}, planning.Looking)
	if err != nil {
		return b, err
	}
	manifest, err := planning.ReadManifest(c.Manifest)
	if err != nil {
		return b, err
	}
	tools, err := crossing.Tools(manifest.Tools)
	if err != nil {
		return b, err
	}
	found, err := folders.HostOf(asked, planning.Planned{Plan: plan.Plan{Project: profile.ProjectGitRoot}}).Project()
	if err != nil {
		return b, err
	}
	own := slices.IndexFunc(found.Places, func(p handover.Place) bool { return p.Own })
	if own < 0 {
		return b, diag.Errorf("find the branches", "go to a project with a git repository", "there is none here")
	}
	b.request = branch.Request{Home: asked.Folders.Home, Tree: found.Path, Repo: found.Places[own], Tools: tools}
	return b, nil
}

// BranchNames are the names of the branches that are kept for the caller's project, for completion.
func BranchNames(c planning.Caller) []string {
	asked, err := planning.NewCall(c, planning.Options{}, planning.Looking)
	if err != nil {
		return nil
	}
	tree, err := project.GitRoot(asked.Facts.Cwd, asked.Facts.Home)
	if err != nil {
		return nil
	}
	return branch.Names(asked.Folders.Home, tree)
}

// List lists the branches that are kept. What sessions that were killed have not handed over crosses first; lines says
// of what.
func (b Branches) List() (list []Branch, lines []string, err error) {
	if list, err = branch.List(b.request); err != nil {
		return nil, nil, err
	}
	for i, k := range list {
		if !k.Killed {
			continue
		}
		told, err := b.settle(k.Name)
		lines = append(lines, told...)
		if err != nil {
			lines = append(lines, "branch "+k.Name+": "+err.Error())
			continue
		}
		list[i].Killed = false
	}
	return list, lines, nil
}

func (b Branches) at(name string) (branch.Branch, error) {
	req := b.request
	req.Name = name
	return branch.At(req)
}

// Diff returns what is new on a branch, with what is not committed there. It is the agent's text.
func (b Branches) Diff(name string, stat bool) ([]byte, error) {
	of, err := b.at(name)
	if err != nil {
		return nil, err
	}
	return of.Diff(stat)
}

// Show returns a file of a branch's checkout as it is now. It is the agent's text.
func (b Branches) Show(name, file string) ([]byte, error) {
	of, err := b.at(name)
	if err != nil {
		return nil, err
	}
	return of.Show(file)
}

// settle hands over what a branch holds. It returns lines on what was left uncommitted or did not cross.
func (b Branches) settle(name string) (lines []string, err error) {
	of, err := b.at(name)
	if err != nil {
		return nil, err
	}
	held, err := of.Open()
	if err != nil {
		return nil, err
	}
	defer held.Close()
	lines, _, err = settleBranch(held)
	return lines, err
}

// settleBranch is [Branches.settle] for a branch that is held. stays are the lines on what did not cross.
func settleBranch(held *branch.Held) (lines, stays []string, err error) {
	if held.Fresh {
		return nil, nil, nil
	}
	git, err := handover.Begin(handover.Request{Places: []handover.Place{held.Place()}, Tools: held.Tools})
	if err != nil {
		return nil, nil, err
	}
	lines, err = held.Leave()
	stays = slices.DeleteFunc(slices.Clone(lines), branch.IsCommit)
	told := git.End(true)
	lines = append(lines, handover.Lines(told)...)
	stays = append(stays, handover.Lines(slices.DeleteFunc(told, handover.Remark.HasCrossed))...)
	if err == nil {
		err = held.Done()
	}
	return lines, stays, err
}

// Remove removes what is kept of a branch, once all that it holds has crossed; with force, whatever it holds.
func (b Branches) Remove(name string, force bool) error {
	of, err := b.at(name)
	if err != nil && !(force && of.Damaged) {
		return err
	}
	held, err := of.Open()
	if err != nil {
		return err
	}
	defer held.Close()
	_, stays, err := settleBranch(held)
	if !force && (err != nil || len(stays) > 0) {
		for _, line := range stays {
			err = errors.Join(err, errors.New(strings.TrimPrefix(line, "branch "+name+": ")))
		}
		return diag.Wrap("remove branch "+name, err, "look at it with `claudebox branch diff "+name+"`; --force removes it")
	}
	return held.Remove()
}
