package project

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitdir"
)

// opener collects a Project step by step.
type opener struct {
	Request
	Project
	beside        bool            // it is not the project, but given beside it
	tree          *beneath.Folder // the project
	alsoExecuted  []string        // what git's configuration names, relative to Path
	configuration []string        // what of it git reads as configuration: protected if tracked, too
	included      []string        // what configurations of git include, relative to Path
	tracked       Tracked         // what git's indexes hold, as far as that counts
	pushed        []string        // names in the index that count as untracked
	judged        []string        // git folders whose secrets are covered, relative to Path
	copied        []string        // configurations covered for the secrets in them, relative to Path
	looked        int             // how many files were looked into whose name tells nothing
	hideGlobs     []string        // what the profile's patterns with a slash match
}

const whyClosed = "it cannot be looked at"

func (o *opener) open() error {
	git, err := gitdir.Find(o.Path, o.Home)
	if err != nil {
		return &diag.Error{Op: "look for a repository", Err: err, Remedy: elsewhere}
	}
	if git.Worktree != "" && o.GitRoot && !git.Bare && !pathname.Below(o.Path, git.Worktree+"/.git") {
		o.Path, o.Root = git.Worktree, git.Worktree
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
	if err := o.repository(git); err != nil {
		return err
	}
	o.userNamed()
	found, err := o.found()
	if err != nil {
		return err
	}
	o.look(found)
	named := len(o.alsoExecuted) + len(o.configuration)
	for _, step := range []func() error{
		o.nested, o.userNested, o.filled,
		func() error { found, err = o.foundNested(found, named); return err }, o.hide, o.sockets,
		func() error { return o.executed(found) }, o.otherNames, o.unmade,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	o.finish()
	return nil
}

// foundNested adds what the configurations of nested repositories name, which
// are read after the walk that finds them, and sees what of it is tracked.
// named is how much the project's own names.
func (o *opener) foundNested(found []string, named int) ([]string, error) {
	if len(o.alsoExecuted)+len(o.configuration) == named {
		return found, nil
	}
	all, err := o.found()
	if err != nil {
		return nil, err
	}
	o.Scope.Places = append(slices.Clone(all), o.hideGlobs...)
	for _, git := range o.Seen.Git {
		for _, rel := range all { // as its own index names it
			if below, ok := strings.CutPrefix(rel, path.Dir(git)+"/"); ok {
				o.Scope.Places = append(o.Scope.Places, below)
			}
		}
	}
	o.Scope.readIndexes(o.tree, &o.Seen, nil)
	o.trackedNow()
	return all, nil
}

// look sees what is in the project.
func (o *opener) look(found []string) {
	o.OpenConfig = o.WritableConfig
	o.Scope.Build, o.Scope.Path, o.Scope.Places = o.Build, o.Path, append(found, o.hideGlobs...)
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
		if !o.contains(o.Repo.Common) {
			o.Scope.Common = o.Repo.Common
		}
	}
	var known *Seen
	if o.Known != nil {
		known = o.Known(o.Scope)
	}
	o.Seen = o.Scope.Look(o.tree, known)
	o.trackedNow()
	if o.Cut = o.Seen.Cut; o.Cut {
		o.note(true, fmt.Sprintf("the project has more than %d entries: further repositories and secret files in it "+
			"are neither protected nor hidden", walkLimit))
	}
	for _, rel := range o.Seen.Closed {
		// The agent could open it, and nobody would know what it did there.
		guard{o, o.tree}.pin(path.Dir(rel), whyClosed)
		guard{o, o.tree}.add(Mount{Mode: Hidden, Dir: true, Why: whyClosed}, rel)
		o.note(false, o.tree.Join(rel)+" cannot be read, and is hidden inside")
	}
}

// trackedNow takes what the indexes hold for tracked, but for what a session
// put there.
func (o *opener) trackedNow() {
	o.tracked = o.Seen.Tracked
	defer func() { o.Tracked = o.tracked.All() }()
	if o.Memory == nil {
		return
	}
	o.pushed = o.Scope.pushed(o.tree, o.Seen.Git, o.Memory.Pushed)
	for _, name := range o.tracked.All() {
		if o.Memory.Doubted(o.tree.Join(name)) {
			o.pushed = append(o.pushed, name)
		}
	}
	o.tracked = o.tracked.Without(o.pushed)
}

func (o *opener) note(red bool, text string) {
	o.Notes = append(o.Notes, Note{Text: text, Red: red})
}
