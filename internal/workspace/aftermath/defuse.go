package aftermath

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitdefuse"
	"claudebox/internal/workspace/project"
)

// defuse makes harmless every git folder that is not the user's own, or that
// was not protected and has been changed.
func (was record) defuse(r *Report, tree *beneath.Folder, after project.Seen) {
	if was.Scope.Common != "" {
		common, err := beneath.Open(was.Scope.Common)
		if err != nil {
			r.Failures = append(r.Failures, "look at the git folder: "+err.Error())
		} else {
			defer common.Close()
			b := was.inners(r, common, was.known)
			was.links(r, b, ".")
			r.took(was.Scope.Common, b.Changes)
		}
	}
	// What is new in a git folder outside has been dealt with where it lies.
	known := func(file string) bool {
		return was.known(file) || was.Scope.Common != "" && pathname.Below(file, was.Scope.Common)
	}
	b := was.inners(r, tree, known)
	for _, rel := range after.Bare {
		r.try(b, b.Bare, rel)
	}
	for _, rel := range after.Git {
		r.try(b, b.Place, rel)
	}
	for _, link := range after.Links { // git looks into them wherever they are
		if what, err := tree.Look(link); err == nil && what.Kind == beneath.Dir {
			r.try(b, b.Place, path.Join(link, ".git"))
		}
	}
	for _, rel := range slices.Concat(after.Bare, after.Git) {
		was.links(r, b, rel)
	}
	for _, rel := range was.Scope.Unmade {
		r.try(b, b.Unmade, rel)
	}
	was.filled(r, b, after)
	r.took("", b.Changes)
}

// inners makes harmless what was added to git folders of the user's own.
func (was record) inners(r *Report, root *beneath.Folder, known func(string) bool) *gitdefuse.Bench {
	b := &gitdefuse.Bench{Root: root, Known: known}
	for _, repo := range was.Repos {
		if !pathname.Below(repo, root.Path()) {
			continue
		}
		rel := relativeTo(root.Path(), repo)
		if what, err := root.Look(rel); err == nil && what.Kind == beneath.Dir {
			r.try(b, b.Inner, rel)
			r.try(b, b.Running, rel)
		}
	}
	return b
}

func (r *Report) try(b *gitdefuse.Bench, do func(string) error, rel string) {
	if err := do(rel); err != nil {
		r.Failures = append(r.Failures, "make "+b.Root.Join(rel)+" harmless: "+err.Error())
	}
}

// known tells the user's own git folders, as far as they are what they were.
func (was record) known(file string) bool {
	if state, loose := was.isLoose(file); loose {
		return state == stateOf(file)
	}
	return slices.Contains(was.Repos, file)
}

// decisive are the files by which git runs something, below a git folder.
func decisive() []string {
	return append([]string{"config", "config.worktree", "commondir", "HEAD"}, gitdefuse.RunningPlaces()...)
}

// stateOf sums up all by which the host's git would run something.
func stateOf(git string) string {
	at, err := beneath.Open(git)
	if err != nil {
		return ""
	}
	defer at.Close()
	const limit = 1 << 20
	sum := sha256.New()
	for _, name := range decisive() {
		if name == "HEAD" { // a commit moves it; only that it is there counts
			what, err := at.Look(name)
			fmt.Fprintf(sum, "%d %v\n", what.Kind, err)
			continue
		}
		content, err := at.Read(name, limit)
		fmt.Fprintf(sum, "%s %d %v\n%s", name, len(content), err != nil, content)
	}
	names, err := at.Names("hooks", 10_000)
	slices.Sort(names)
	fmt.Fprintln(sum, err != nil)
	for _, name := range names {
		what, _ := at.Look("hooks/" + name)
		fmt.Fprintf(sum, "%q %+v\n", name, what)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
