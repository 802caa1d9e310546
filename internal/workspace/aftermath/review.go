package aftermath

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/project"
	"claudebox/internal/workspace/survey"
)

// place is a folder that an agent could write to, before the session and after it.
type place struct {
	was       record
	before    *seen // nil: only the record is known
	after     seen
	strangers []git.Repair // of git places
	agents    string       // where agents keep their own files; empty: not known

	told      []Change
	repairs   []git.Repair
	mentioned map[string]bool // what is told of or repaired, and all folders above
}

// review returns what is reported of a place, and the repairs that keep it from the user's tools. It has no effects.
func review(p place) ([]Change, []git.Repair) {
	v := &p
	v.mentioned = map[string]bool{}
	v.gitPlaces()
	v.links()
	for _, rel := range p.after.pipes {
		if !p.was.shared(path.Join(p.was.Scope.Path, rel)) {
			v.rename(rel, "it is a pipe: whoever opens it waits")
		}
	}
	later := byThatSession
	if p.before != nil {
		later = ""
		v.files()
		v.repositories()
	} else {
		v.since()
	}
	v.wholes(later)
	return v.told, v.repairs
}

func (v *place) tell(rel, change, means string) {
	v.mention(rel)
	v.told = append(v.told, Change{Path: rel, Change: change, Means: means})
}

func (v *place) rename(rel, why string) {
	v.mention(rel)
	v.repairs = append(v.repairs, git.Repair{Do: git.Rename, Rel: rel, Why: why})
}

// mention notes that something is told of.
func (v *place) mention(rel string) {
	for ; !v.mentioned[rel]; rel = path.Dir(rel) {
		v.mentioned[rel] = true
	}
}

// mentions reports whether something at or below a path is told of already.
func (v *place) mentions(rel string) bool { return v.mentioned[rel] }

// says reports whether a path itself is told of already, and not as an ordinary edit.
func (v *place) says(rel string) bool {
	return slices.ContainsFunc(v.repairs, func(r git.Repair) bool { return r.Rel == rel }) ||
		slices.ContainsFunc(v.told, func(c Change) bool { return c.Path == rel && !c.Ordinary })
}

// gitPlaces adds the repairs of what git would obey.
func (v *place) gitPlaces() {
	for _, r := range v.strangers {
		v.mention(r.Rel)
	}
	v.repairs = append(v.repairs, v.strangers...)
	for _, rel := range slices.Concat(v.after.obeyed, v.was.Scope.Unmade) {
		v.rename(rel, git.ByYourConfiguration)
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
			v.rename(l.rel, "it leads to "+diag.Name(l.to)+", where an agent keeps its own files")
		default:
			out := strings.Contains(l.means, leadsOutside)
			if out {
				told++
			}
			if !out || told <= outsideLimit {
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
	whole := slices.DeleteFunc(checkouts(v.after.Seen, &v.before.Seen), v.isUsersCheckout)
	counts := map[string]int{}
	for _, dir := range whole {
		counts[dir] = 0
	}
	in := func(rel string) (whole string) { // the outermost one
		for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
			if _, is := counts[dir]; is {
				whole = dir
			}
		}
		return whole
	}
	was := map[string]survey.File{}
	for _, f := range v.before.Files {
		was[f.Rel] = f
	}
	var settings []string
	told := map[string]bool{}
	tell := func(rel, change, means string) { told[rel] = true; v.tell(rel, change, means) }
	for _, f := range v.after.Files {
		before, there := was[f.Rel]
		delete(was, f.Rel)
		means := cmp.Or(v.means(f.Rel, before), v.meansLink(f))
		if !there && means == "" && v.isSetting(f) {
			settings = append(settings, f.Rel)
		}
		switch {
		case means == "" || v.was.isUnseen(f.Rel):
		case there && (before == f || before.Kind == beneath.Dir && f.Kind == beneath.Dir):
		case f.Kind == beneath.Special && v.says(f.Rel): // it is a pipe, and is renamed
		case in(f.Rel) != "":
			counts[in(f.Rel)]++
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
			v.tell(dir, New, "a checkout that was made inside"+runsIn(counts[dir]))
		}
	}
	v.settings(settings, New, "")
}

// runsIn says of a new checkout how many files in it tools of the user's would run.
func runsIn(count int) string {
	switch count {
	case 0:
		return ""
	case 1:
		return "; your tools would run 1 file in it"
	default:
		return fmt.Sprintf("; your tools would run %d files in it", count)
	}
}

// isSetting reports whether a file lies at the root, is called like one that some tool obeys, and is not told of
// otherwise.
func (v *place) isSetting(f survey.File) bool {
	return f.Kind != beneath.Dir && path.Dir(f.Rel) == "." && hostrun.IsSetting(f.Rel) && !v.mentions(f.Rel)
}

// settings reports files of [place.isSetting] in one line.
func (v *place) settings(list []string, change, later string) {
	const most = 6
	if len(list) == 0 {
		return
	}
	const means = "some tool may obey it, as it begins with a dot or is called like a configuration; these are "
	v.tell(".", change, means+change+": "+diag.Some(list, most)+later)
}

// byThatSession is said of a change since a session began whose end nobody saw.
const byThatSession = "; by that session, or later"

// since reports the files that the user's tools run and that were changed since a session began whose end nobody saw.
func (v *place) since() {
	var settings []string
	for _, f := range v.after.Files {
		means := cmp.Or(hostrun.Means(f.Rel), v.meansLink(f))
		if means == "" && f.Stamp.Change >= v.was.since && v.isSetting(f) {
			settings = append(settings, f.Rel)
		}
		if means == "" || f.Kind == beneath.Dir || f.Stamp.Change < v.was.since || v.mentions(f.Rel) {
			continue
		}
		v.tell(f.Rel, Changed, means+byThatSession)
		_, tracked := slices.BinarySearch(v.after.Runs, f.Rel)
		v.told[len(v.told)-1].Ordinary = tracked && f.Kind == beneath.Regular && hostrun.Ordinary(means)
	}
	v.settings(settings, Changed, byThatSession)
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
	return "a link in the place of a folder, and of what is in that: " + means
}

// checkouts returns the folders of repositories in which everything was made by the session.
func checkouts(after project.Seen, before *project.Seen) (dirs []string) {
	for _, place := range after.Git {
		if dir := path.Dir(place); dir != "." && !before.Saw(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// isUsersCheckout reports whether the user has made a checkout while the session ran.
func (v *place) isUsersCheckout(dir string) bool {
	return slices.Contains(v.was.made, path.Join(v.was.Scope.Path, dir, ".git"))
}

// repositories reports new repositories in folders that were there before.
func (v *place) repositories() {
	for _, place := range v.after.Git {
		_, was := slices.BinarySearch(v.before.Git, place)
		if !was && v.before.Saw(path.Dir(place)) && !v.mentions(place) && !v.isUsersCheckout(path.Dir(place)) {
			v.tell(place, New, "a repository that was made inside; git runs nothing that stands in it")
		}
	}
}

// wholes reports the places that are compared as one.
func (v *place) wholes(later string) {
	for _, now := range v.after.wholes {
		var was whole
		at := slices.IndexFunc(v.was.Watched.Wholes, func(w whole) bool { return w.Rel == now.Rel })
		if at >= 0 {
			was = v.was.Watched.Wholes[at]
		}
		change := Changed
		switch {
		case now == was, now.Once && v.says(now.Rel), now.To != "" && v.says(now.To):
			continue
		case now.Sum == "":
			change = Removed
		case was.Sum == "":
			change = New
		}
		v.tell(now.Rel, change, now.Means+later)
	}
}
