package project

import (
	"errors"
	"io/fs"
	"testing"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
)

// What was read alone decides whether a git folder counts. An agent, or another user in a shared folder like /tmp, may
// change it between two looks, so no fault lets one in.
func TestAGitFolderThatChangesWhileItIsReadIsNotMounted(t *testing.T) {
	folder := func(change func(g *git.DotGit)) git.DotGit {
		g := git.DotGit{
			Kind: beneath.Dir, Dir: "/tmp/r/.git", Common: "/tmp/r/.git", Asked: true, Owner: 1000, IsFolder: true,
		}
		change(&g)
		return g
	}
	file := func(change func(g *git.DotGit)) git.DotGit {
		g := folder(func(g *git.DotGit) {
			g.Kind, g.Written, g.Dir, g.Common = beneath.Regular, "/tmp/m/.git", "/tmp/m/.git", "/tmp/m/.git"
			g.Back = "/tmp/r"
		})
		change(&g)
		return g
	}
	same := func(*git.DotGit) {}
	for name, tc := range map[string]struct {
		git  git.DotGit
		used bool
	}{
		"the user's":                   {folder(same), true},
		"another user's":               {folder(func(g *git.DotGit) { g.Owner = 1001 }), false},
		"one that cannot be opened":    {folder(func(g *git.DotGit) { g.Gone, g.Asked = true, false }), false},
		"one that is gone by then":     {folder(func(g *git.DotGit) { g.Unseen = fs.ErrNotExist }), false},
		"no git folder any more":       {folder(func(g *git.DotGit) { g.IsFolder = false }), false},
		"a file that leads to it":      {file(same), true},
		"to one of another tree":       {file(func(g *git.DotGit) { g.Back = "/tmp/x" }), false},
		"to one that tells nothing":    {file(func(g *git.DotGit) { g.NoBack = fs.ErrPermission }), false},
		"by a commondir that is wrong": {file(func(g *git.DotGit) { g.NoCommon, g.Asked = errors.New("x"), false }), false},
		"to nothing":                   {file(func(g *git.DotGit) { g.Gone, g.Asked = true, false }), false},
	} {
		s := surroundings{
			Request: Request{UID: 1000}, path: "/tmp/r/p", isDir: true, owner: 1000, worktree: "/tmp/r", git: tc.git,
		}
		loc, err := s.locate()
		if used := loc.repo.Common != ""; err != nil || used != tc.used || len(loc.told) == 0 {
			t.Errorf("%s: used %t, %v, told %v; want %t", name, used, err, loc.told, tc.used)
		}
	}
}
