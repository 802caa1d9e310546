package aftermath

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/survey"
)

// mend takes out of git's reach what was made since the session began.
func (was record) mend(r *Report, home string, tree *beneath.Folder, after project.Seen) {
	var elsewhere git.Snapshot
	if was.Scope.Common != "" {
		common, err := beneath.Open(was.Scope.Common)
		if err != nil {
			r.Failures = append(r.Failures, "look at the git folder: "+err.Error())
		} else {
			defer common.Close()
			look := git.Look{Own: []string{"."}, Before: &was.Before, Since: was.since()}
			elsewhere = was.review(r, home, common, look, func(at string) bool { return was.Before.Has(at) })
		}
	}
	look := was.Scope.GitPlaces(after)
	look.Before, look.Since = &was.Before, was.since()
	git, bare := was.filled(r, tree, after)
	look.Git, look.Bare = append(look.Git, git...), append(slices.Clone(look.Bare), bare...)
	was.review(r, home, tree, look, func(at string) bool {
		return elsewhere.Has(at) && pathname.Below(at, was.Scope.Common)
	})
}

// review judges what lies below one root, and mends it. It gives what it saw.
func (was record) review(r *Report, home string, root *beneath.Folder, look git.Look,
	elsewhere func(string) bool,
) git.Snapshot {
	seen, err := git.Gather(root, look)
	if err != nil {
		r.Failures = append(r.Failures, "look at all git folders: "+err.Error())
	}
	j := git.Judgement{
		Root: root.Path(), Before: was.Before, After: seen, Elsewhere: elsewhere, OpenConfig: was.OpenConfig,
		Foreign: func(at string) bool { return was.isForeign(home, at) },
	}
	m := git.Mender{Root: root}
	repairs := git.Review(j)
	if root.Path() == was.Scope.Path {
		for _, rel := range was.Scope.Unmade {
			repairs = append(repairs, git.Repair{Do: git.Rename, Rel: rel, Why: git.ByYourConfiguration})
		}
	}
	for _, repair := range repairs {
		if repair.Why != git.StaysLocked || !was.shared(root.Join(repair.Rel)) {
			r.try(&m, repair)
		}
	}
	base := relativeTo(was.Scope.Path, root.Path())
	r.took(base, m.Changes)
	for _, rel := range j.Settings() {
		if at := path.Join(base, rel); !r.mentions(at) {
			r.add(at, Changed, "git runs what its configuration names")
		}
	}
	for rel, text := range j.Remarks() {
		if at := path.Join(base, rel); !r.mentions(at) {
			r.add(at, New, text)
		}
	}
	return seen
}

// try applies one repair. What fails is tried again by the next launch.
func (r *Report) try(m *git.Mender, repair git.Repair) {
	if err := m.Apply(repair); err != nil {
		r.Failures = append(r.Failures, "make "+m.Root.Join(repair.Rel)+" harmless: "+err.Error())
	}
}

// instance judges the git places in the agent's own folders that were changed
// since the session began: the user may come there, by a path or a link.
func (was record) instance(r *Report, home string) {
	if was.Instance == "" {
		return
	}
	at, err := beneath.Open(was.Instance)
	if err != nil {
		return // it is gone
	}
	defer at.Close()
	inner := record{Began: was.Began, Scope: project.Scope{Build: was.Scope.Build, Path: was.Instance}}
	known := Known(home, inner.Scope)
	after := inner.look(at, known)
	if known == nil || !after.Same {
		keep(home, inner.Scope, after)
	}
	old := func(rel string) bool { return !git.Touched(at, rel, was.since()) }
	seen := Report{base: was.Instance}
	look := git.Look{Before: &git.Snapshot{}, Since: was.since()}
	places, bare := inner.filled(&seen, at, after)
	look.Git = append(slices.DeleteFunc(slices.Clone(after.Git), old), places...)
	look.Bare = append(slices.DeleteFunc(slices.Clone(after.Bare), old), bare...)
	inner.review(&seen, home, at, look, nil)
	inner.pipes(&seen, at, after.Files)
	r.Changes = append(r.Changes, seen.Changes...)
	r.Failures = append(r.Failures, seen.Failures...)
}

// pipes takes away the pipes that were made since the session began: who opens
// one waits for ever, and git opens every .gitattributes.
func (was record) pipes(r *Report, tree *beneath.Folder, files []survey.File) {
	m := git.Mender{Root: tree}
	for _, f := range files {
		if f.Kind == beneath.Special && f.Stamp.Change >= was.since() && !was.shared(tree.Join(f.Rel)) {
			r.try(&m, git.Repair{Do: git.Rename, Rel: f.Rel, Why: "it is a pipe: whoever opens it waits"})
		}
	}
	r.took("", m.Changes)
}

// isForeign reports whether a path, of a repository that a remote names, is
// where no agent writes but in sessions of its own.
func (was record) isForeign(home, at string) bool {
	there := at // or the last folder on the way that is there, as for what only the agent sees at such a path
	info, err := os.Lstat(there)
	for errors.Is(err, fs.ErrNotExist) {
		there = path.Dir(there)
		info, err = os.Lstat(there)
	}
	if real, fault := filepath.EvalSymlinks(there); err != nil || fault != nil || real != there || !info.IsDir() {
		return false
	}
	home, err = filepath.EvalSymlinks(home)
	return err == nil && !pathname.Below(at, home) && (was.Scope.Common == "" || !pathname.Below(at, was.Scope.Common))
}

// filled are the git places in the folders that tools fill, as far as they were
// changed since the session began. Nobody looked there before. Pipes there are
// taken away.
func (was record) filled(r *Report, tree *beneath.Folder, after project.Seen) (places, bare []string) {
	seen := was.Scope.LookFilled(tree, after)
	for range openRounds {
		closed := slices.DeleteFunc(slices.Clone(seen.Closed),
			func(dir string) bool { return !git.Touched(tree, dir, was.since()) })
		if !openAll(tree, closed) {
			break
		}
		seen = was.Scope.LookFilled(tree, after)
	}
	r.Cut = r.Cut || seen.Cut
	was.pipes(r, tree, seen.Files)
	old := func(rel string) bool { return !git.Touched(tree, rel, was.since()) }
	return slices.DeleteFunc(seen.Git, old), slices.DeleteFunc(seen.Bare, old)
}
