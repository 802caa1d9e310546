package project

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
)

// opener collects a Project step by step.
type opener struct {
	Request
	Project
	beside       bool            // it is not the project, but given beside it
	tree         *beneath.Folder // the project
	common       *beneath.Folder // the repository's common folder, where that lies outside of the project
	known        *Seen           // what an earlier look saw
	alsoExecuted []string        // what git's configuration names, relative to Path
	configured   []string        // what of it git reads as configuration: protected if tracked, too
	included     []string        // what configurations of git include, relative to Path
	tracked      Tracked         // what git's indexes hold, as far as that counts
	pushed       []string        // names in the index that count as untracked
	judged       []string        // git folders whose secrets are covered, relative to Path
	copied       []string        // configurations covered for the secrets in them, relative to Path
	looked       int             // how many files were looked into whose name tells nothing
	hideGlobs    []string        // what the profile's patterns with a slash match
}

const whyClosed = "it cannot be looked at"

func (o *opener) open() error {
	where, err := find(o.Path, o.Home)
	if err != nil {
		return &diag.Error{Op: "look for a repository", Err: err, Remedy: elsewhere}
	}
	if where.worktree != "" && o.GitRoot && !where.bare && !pathname.Below(o.Path, where.worktree+"/.git") {
		o.Path, o.Root = where.worktree, where.worktree
	}
	if !o.beside {
		if err := o.judge(); err != nil {
			return err
		}
	}
	if o.tree, err = beneath.Open(o.Path); err != nil {
		return &diag.Error{Op: "open the project folder", Err: err, Remedy: "start claudebox in a folder you may enter"}
	}
	defer o.tree.Close()
	if err := o.repository(where); err != nil {
		return err
	}
	if o.common != nil {
		defer o.common.Close()
	}
	o.look()
	folders, err := o.gather()
	if err != nil {
		return err
	}
	found, err := o.named(folders)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return o.protectGit(folders, o.Before.Files) },
		o.filled, o.hide, o.sockets, func() error { return o.executed(found) }, o.otherNames, o.unmade,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	o.finish()
	return nil
}

// look sees what is in the project.
func (o *opener) look() {
	o.OpenConfig, o.show = o.WritableConfig, o.Show
	o.Scope.Build, o.Scope.Path = o.Build, o.Path
	o.Scope.HideAt, o.Scope.Relative = anchored(o.Hide), relativeNames(o.UserGit)
	for _, pattern := range o.Hide {
		if !strings.Contains(pattern, "/") {
			o.Scope.Hide = append(o.Scope.Hide, pattern)
		}
	}
	if o.Repo.Dir != "" {
		o.Scope.Index = o.Repo.Dir
		if below := relative(o.Repo.Worktree, o.Path); below != "." {
			o.Scope.Strip = below + "/"
		}
		if o.common != nil {
			o.Scope.Common = o.Repo.Common
		}
	}
	if o.Known != nil {
		o.known = o.Known(o.Scope)
	}
	o.Seen = o.Scope.walk(o.tree, o.known, walkLimit, 0)
	if o.Cut = o.Seen.Cut; o.Cut {
		o.note(true, fmt.Sprintf("the project has more than %d entries: "+
			"further repositories and secret files in it are neither protected nor hidden", walkLimit))
	}
	for _, rel := range o.Seen.Closed {
		guard{o, o.tree}.closed(rel)
	}
}

// gather looks at the git folders of the project, and of the repository that it
// lies in.
func (o *opener) gather() (folders []gitFolder, err error) {
	if o.Before, err = git.Gather(o.tree, o.Scope.GitPlaces(o.Seen)); err != nil {
		return nil, err
	}
	if o.contains(o.Repo.Common) && o.Repo.Common != "" && o.Before.Folder(o.Repo.Common) == nil {
		own, err := git.Gather(o.tree, git.Look{Own: []string{relative(o.Path, o.Repo.Common)}})
		if err != nil {
			return nil, err
		}
		o.Before = o.Before.And(own)
	}
	inside := o.gitFolders(o.tree, o.Before)
	if o.common == nil {
		return inside, nil
	}
	theirs, err := git.Gather(o.common, git.Look{Own: []string{"."}})
	o.Before = o.Before.And(theirs)
	return append(o.gitFolders(o.common, theirs), inside...), err
}

// named takes down what git's configurations name, and lists what of all that
// the host executes is there. What of it is tracked is known then.
func (o *opener) named(folders []gitFolder) (found []string, err error) {
	o.learnAll(folders)
	if found, err = o.found(); err != nil {
		return nil, err
	}
	o.Scope.Places = append(slices.Clone(found), o.hideGlobs...)
	for _, git := range o.Seen.Git {
		for _, rel := range found { // as its own index names it
			if below, ok := strings.CutPrefix(rel, path.Dir(git)+"/"); ok {
				o.Scope.Places = append(o.Scope.Places, below)
			}
		}
	}
	o.Scope.readIndexes(o.tree, &o.Seen, o.known)
	o.tracked = o.Seen.Tracked
	if o.Memory != nil { // what a session put there does not count
		o.pushed = o.Seen.uncounted(o.tree, o.Memory)
		for _, name := range o.tracked.All() {
			if o.Memory.Doubted(o.tree.Join(name)) {
				o.pushed = append(o.pushed, name)
			}
		}
		o.tracked = o.tracked.Without(o.pushed)
	}
	o.Tracked = o.tracked.All()
	return found, nil
}

func (o *opener) note(red bool, text string) {
	o.Notes = append(o.Notes, Note{Text: text, Red: red})
}
