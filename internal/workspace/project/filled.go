package project

import (
	"fmt"
	"path"
	"slices"
	"time"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/survey"
)

// Filled is what git takes for a repository in the folders that tools fill. To
// look for it takes as long as all else together, so it is kept from launch to
// launch until a tool has filled the folders anew. One that a person makes there
// by hand, deeper, is seen no sooner than that.
type Filled struct {
	State string   // of the folders; empty: it may change and not be seen to
	Repos []string // relative to the project
}

// LookFilled walks the folders of seen that tools fill, for what git takes for a
// repository, for pipes, and nothing else.
func (s Scope) LookFilled(tree *beneath.Folder, seen Seen) *survey.Survey {
	if len(seen.Skipped) == 0 {
		return &survey.Survey{}
	}
	return survey.Walk(tree, survey.Question{From: seen.Skipped, Limit: walkLimitAfter}, nil)
}

// filledState tells one filling of the folders from the next: npm writes to
// node_modules itself, pip checks out in src of an environment.
func filledState(tree *beneath.Folder, folders []string) string {
	const recent = 20 * time.Millisecond // see package survey
	latest := time.Now().Add(-recent).UnixNano()
	var stamps []beneath.Stamp
	for _, dir := range folders {
		places := []string{dir}
		if path.Base(dir) == ".venv" {
			places = append(places, dir+"/src")
		}
		for _, place := range places {
			what, err := tree.Look(place)
			if err != nil || what.Stamp.Change > latest {
				return ""
			}
			stamps = append(stamps, what.Stamp)
		}
	}
	return fmt.Sprint(folders, stamps)
}

// lookFilled covers what is secret in the configurations of repositories in folders
// that tools fill: pip keeps the token of a URL in a checkout of its own.
func (v *view) lookFilled(at below) (filled Filled, err error) {
	if len(v.seen.Skipped) == 0 {
		return filled, nil
	}
	if v.Request.Filled != nil {
		filled = v.Request.Filled(v.path)
	}
	if now := filledState(v.tree, v.seen.Skipped); now == "" || now != filled.State {
		found := v.scope.LookFilled(v.tree, v.seen)
		filled = Filled{now, slices.Concat(found.Git, found.Bare)}
		if found.Cut {
			at.note(true, "the folders that tools fill have too many entries: configurations of git in them may be "+
				"seen with their secrets")
		}
	}
	repos, err := git.Gather(v.tree, git.Look{Git: filled.Repos})
	for _, g := range v.gitFolders(at, repos) {
		if err == nil {
			err = g.secrets()
		}
	}
	return filled, err
}
