package aftermath

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/survey"
)

// place is a folder that an agent could write to, before the session and after it.
type place struct {
	was    record
	base   string // the beginning of its paths in the report
	before *seen  // nil: only the record is known
	after  seen
	git    git.Judgement
	agents string // where agents keep their own files; empty: not known
	own    bool   // it is a folder of the agent's own

	told    []Change
	repairs []git.Repair
}

// review returns what is reported of a place, and the repairs that keep it from the user's tools. It has no effects.
func review(p place) ([]Change, []git.Repair) {
	v := &p
	v.gitPlaces()
	v.links()
	for _, rel := range p.after.pipes {
		if !p.was.shared(path.Join(p.git.Root, rel)) {
			v.rename(rel, "it is a pipe: whoever opens it waits")
		}
	}
	if p.before != nil {
		v.files()
		v.repositories()
		v.wholes()
	} else if !v.own && v.git.Root == v.was.Scope.Path {
		v.since()
	}
	return v.told, v.repairs
}

func (v *place) tell(rel, change, means string) {
	v.told = append(v.told, Change{Path: path.Join(v.base, rel), Change: change, Means: means})
}

func (v *place) rename(rel, why string) {
	v.repairs = append(v.repairs, git.Repair{Do: git.Rename, Rel: rel, Why: why})
}

// mentions reports whether something at or below a path is told of already.
func (v *place) mentions(rel string) bool {
	return slices.ContainsFunc(v.repairs, func(r git.Repair) bool { return pathname.Below(r.Rel, rel) }) ||
		slices.ContainsFunc(v.told, func(c Change) bool { return pathname.Below(c.Path, path.Join(v.base, rel)) })
}

// gitPlaces adds the repairs of what git would obey. A lock that another living session may hold is left to the end of
// that session.
func (v *place) gitPlaces() {
	repairs, remarks := git.Review(v.git)
	v.repairs = slices.DeleteFunc(repairs, func(r git.Repair) bool {
		return r.Why == git.StaysLocked && v.was.shared(path.Join(v.git.Root, r.Rel))
	})
	named := v.after.obeyed
	if v.git.Root == v.was.Scope.Path {
		named = slices.Concat(named, v.was.Scope.Unmade)
	}
	for _, rel := range named {
		v.rename(rel, git.ByYourConfiguration)
	}
	for _, r := range remarks {
		if !v.mentions(r.Rel) {
			v.tell(r.Rel, map[bool]string{true: New, false: Changed}[r.New], r.Text)
		}
	}
}

// outsideLimit is how many links that lead outside are reported one by one.
const outsideLimit = 20

// leadsOutside is part of what is said of a link that leads outside.
const leadsOutside = "outside the project"

// links reports links that lead out of the project. One that leads to where agents keep their own files is renamed: git
// would obey a repository there.
func (v *place) links() {
	told := 0
	for _, l := range v.after.links {
		switch {
		case v.mentions(l.rel):
		case v.agents != "" && pathname.Below(l.to, v.agents):
			v.rename(l.rel, "it leads to "+l.to+", where an agent keeps its own files")
		default:
			if told++; told <= outsideLimit {
				v.tell(l.rel, New, l.means)
			}
		}
	}
	if told > outsideLimit {
		v.tell(".", New, fmt.Sprintf("%d more links that lead outside the project", told-outsideLimit))
	}
}

// files reports changes of files that the user's tools run. Those in a new checkout are reported as one.
func (v *place) files() {
	whole := v.checkouts()
	was := map[string]survey.File{}
	for _, f := range v.before.Files {
		was[f.Rel] = f
	}
	counts := map[string]int{}
	told := map[string]bool{}
	tell := func(rel, change, means string) { told[rel] = true; v.tell(rel, change, means) }
	for _, f := range v.after.Files {
		before, there := was[f.Rel]
		delete(was, f.Rel)
		means := cmp.Or(v.means(f.Rel, before), v.meansLink(f))
		in := slices.IndexFunc(whole, func(dir string) bool { return strings.HasPrefix(f.Rel, dir+"/") })
		switch {
		case means == "" || there && (before == f || before.Kind == beneath.Dir && f.Kind == beneath.Dir):
		case in >= 0:
			counts[whole[in]]++
		case f.Kind == beneath.Dir && told[path.Dir(f.Rel)]:
		case !there:
			tell(f.Rel, New, means)
		case before.Stamp != f.Stamp && !v.after.equal[f.Rel] || before.Kind != f.Kind:
			tell(f.Rel, Changed, means)
			_, tracked := slices.BinarySearch(v.before.Runs, f.Rel)
			v.told[len(v.told)-1].Ordinary = tracked && before.Kind == f.Kind && f.Kind == beneath.Regular &&
				hostrun.Ordinary(means)
		case f.Exec && !before.Exec:
			tell(f.Rel, Executable, means)
		}
	}
	for rel, before := range was {
		if means := cmp.Or(v.means(rel, before), v.meansLink(before)); means != "" {
			v.tell(rel, Removed, means)
		}
	}
	for _, dir := range whole {
		if !v.mentions(dir + "/.git") {
			v.tell(dir, New, fmt.Sprintf("a checkout that was made inside; files in it that your tools would run: %d",
				counts[dir]))
		}
	}
}

// since reports the files that the user's tools run and that were changed since a session began whose end nobody saw.
func (v *place) since() {
	for _, f := range v.after.Files {
		means := cmp.Or(hostrun.Means(f.Rel), v.meansLink(f))
		if means == "" || f.Kind == beneath.Dir || f.Stamp.Change < v.was.since || v.mentions(f.Rel) {
			continue
		}
		v.tell(f.Rel, Changed, means+"; by that session, or later")
		_, tracked := slices.BinarySearch(v.after.Runs, f.Rel)
		v.told[len(v.told)-1].Ordinary = tracked && f.Kind == beneath.Regular && hostrun.Ordinary(means)
	}
}

// means says what a change of a file means; empty: nothing. If the path was a link with a secret's name, a file was
// hidden because the link led to it, whatever the file's own name is.
func (v *place) means(rel string, before survey.File) string {
	if before.Kind == beneath.Link && v.was.Scope.Hides(rel) {
		return "a file was hidden as it led there, and stays hidden"
	}
	return hostrun.Means(rel)
}

// meansLink says what a link means where the user's tools look for a folder, unless it is told where it leads; empty:
// it is no such link.
func (v *place) meansLink(f survey.File) string {
	means := hostrun.MeansLink(f.Rel)
	if f.Kind != beneath.Link || means == "" || v.mentions(f.Rel) {
		return ""
	}
	return "a link in the place of a folder; of what is in that: " + means
}

// checkouts returns the folders of repositories in which everything was made by the session.
func (v *place) checkouts() (dirs []string) {
	for _, place := range v.after.Git {
		if dir := path.Dir(place); dir != "." && !v.before.Saw(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// repositories reports new repositories in folders that were there before, and files whose changes git hides now.
func (v *place) repositories() {
	for _, place := range v.after.Git {
		if !slices.Contains(v.before.Git, place) && v.before.Saw(path.Dir(place)) && !v.mentions(place) {
			v.tell(place, New, "a repository that was made inside; git runs nothing that stands in it")
		}
	}
	for _, rel := range v.after.Hushed {
		if _, was := slices.BinarySearch(v.before.Hushed, rel); !was {
			v.tell(rel, Changed, "git shows no change of it any more (skip-worktree or assume-unchanged in the index)")
		}
	}
}

// wholes reports the places that are compared as one.
func (v *place) wholes() {
	for rel, now := range v.after.wholes {
		was, change := v.before.wholes[rel], Changed
		switch {
		case now == was, now.once && v.mentions(rel), now.to != "" && v.mentions(now.to):
			continue
		case now.sum == "":
			change = Removed
		case was.sum == "":
			change = New
		}
		v.tell(rel, change, now.means)
	}
}
