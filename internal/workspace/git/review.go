package git

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/gitconfig"
)

// Action is what a repair does.
type Action int

const (
	MoveAside Action = iota // into a folder beside, in the git folder
	Rename                  // beside, by another name
	Disarm                  // its HEAD is renamed: git takes it for no repository then
	Rewrite                 // moved aside, and written anew
	Drop                    // removed, and not told: a cache
)

// Repair is one step that takes something out of git's reach.
type Repair struct {
	Do      Action
	Rel     string // below the root
	Git     string // the git folder that keeps what is moved
	Content []byte // of what is written anew
	Why     string
}

// Judgement is the input of [Review].
type Judgement struct {
	Root   string
	Before Snapshot
	After  Snapshot
	// Elsewhere reports whether a path outside of the root is a git place that is the user's, or was judged.
	Elsewhere func(at string) bool
	// Users reports whether a path is in a git folder of the user's, where no agent could write. May be nil.
	Users func(at string) bool
	// Foreign reports whether a path outside of the root is one that no agent can write to unseen: git may push there.
	// It may fetch from there, too, so this is for folders of the agent's own alone, where nobody fetches. May be nil.
	Foreign func(at string) bool
	// OpenConfig says that settings which the user's own configurations gained may stay.
	OpenConfig bool

	good map[string]bool
}

// Remark is something in the user's own git folders that a person should know of, although it is not taken out.
type Remark struct {
	Rel, Text string // below the root
	New       bool   // or changed
}

// Review returns the repairs after which git obeys nothing that was made since the look before, and remarks on others.
func Review(j Judgement) (repairs []Repair, remarks []Remark) {
	j.good = map[string]bool{}
	for _, f := range j.After.Folders {
		j.good[f.Path] = true
	}
	judged := map[string][]Repair{}
	for again := true; again; { // what leads to a place that goes, goes as well
		again = false
		for _, f := range j.After.Folders {
			judged[f.Path] = j.folder(f)
			gone := slices.ContainsFunc(judged[f.Path], func(r Repair) bool {
				return r.Rel == f.Rel && (r.Do == MoveAside || r.Do == Disarm)
			})
			if gone && j.good[f.Path] {
				j.good[f.Path], again = false, true
			}
		}
	}
	for _, f := range j.After.Folders {
		remarks = append(remarks, f.remarks()...)
		for _, r := range judged[f.Path] {
			r.Git = f.Rel
			if r.Rel == f.Rel {
				r.Git = f.In
			}
			repairs = append(repairs, r)
		}
	}
	for _, f := range j.After.Files {
		if why := j.file(f); why != "" {
			repairs = append(repairs, Repair{Do: Rename, Rel: f.Rel, Why: why})
		}
	}
	for _, f := range j.After.Named {
		if fileIn(j.Before.Named, f.Path) == nil {
			repairs = append(repairs, Repair{Do: Rename, Rel: f.Rel, Why: ByYourConfiguration})
		}
	}
	return repairs, remarks
}

// ByYourConfiguration is the reason why a new file goes that the user's own configuration names.
const ByYourConfiguration = "your git's configuration names it, and git would run or obey it"

// underWay are the names by which git has an operation to continue.
var underWay = map[string]string{
	"rebase-merge": "a rebase is under way", "rebase-apply": "a rebase or `git am` is under way",
	"MERGE_HEAD": "a merge is under way", "CHERRY_PICK_HEAD": "a cherry-pick is under way",
	"REVERT_HEAD": "a revert is under way", "BISECT_START": "a bisection is under way",
}

// remarks returns what to say of a git folder of the user's: which configurations have changed, which operation git
// would continue, whether it ignores less, and whether it shows replaced commits.
func (f Folder) remarks() (list []Remark) {
	if f.before == nil {
		return nil
	}
	for _, e := range f.Entries {
		was := f.before.Entry(e.Name)
		standIn := was == nil && e.Stamp.Size == 0
		if ruleOf(e.Name).sort == setting && !e.same(was) && !standIn &&
			!(e.read && slices.Equal(e.sums(), f.before.Own)) { // as a tracked one that is checked out anew
			list = append(list, Remark{path.Join(f.Rel, e.Name), "git runs what its configuration names", false})
		}
		if e.Name == "index" && f.before.isSplit() && !e.same(was) {
			text := "it is split: claudebox does not see what is staged, and git may not show every change; " +
				"`git update-index --no-split-index` makes it whole"
			list = append(list, Remark{path.Join(f.Rel, e.Name), text, false})
		}
		if text := underWay[e.Name]; text != "" && was == nil {
			text += ", since this session: `git status` shows it"
			list = append(list, Remark{path.Join(f.Rel, e.Name), text, true})
		}
	}
	rules := f.Entry(excluding)
	if text, _ := rules.Text(); (rules == nil || !rules.same(f.before.Entry(excluding))) &&
		Unignores(f.before.Ignores, Ignoring([]byte(text))) {
		list = append(list, Remark{path.Join(f.Rel, excluding), Unignored, false})
	}
	packed, read := f.Entry("packed-refs").Text()
	read = read && text(packed) // else it is taken out
	if f.replaces || read && strings.Contains(packed, " refs/replace/") {
		list = append(list, Remark{
			path.Join(f.Rel, "refs/replace"), "git shows other commits in place of some (`git replace -l`)", true,
		})
	}
	return list
}

// place reports whether a path is a git folder that is the user's, or judged.
func (j Judgement) place(at string) bool {
	return j.good[at] || j.Users != nil && j.Users(at) ||
		j.Elsewhere != nil && !pathname.Below(at, j.Root) && j.Elsewhere(at)
}

func (j Judgement) folder(f Folder) []Repair {
	if why := j.unlinked(f); f.Role == Linked && why != "" {
		return []Repair{{Do: MoveAside, Rel: f.Rel, Why: why}}
	}
	repairs := slices.Clone(f.odd)
	for _, e := range f.Entries {
		if r, bad := j.entry(f, e); bad {
			repairs = append(repairs, r)
		}
	}
	repairs = joinRepairs(repairs)
	odd := func(r Repair) bool { return r.Do != Drop }
	if f.Role == Bare && f.before == nil && slices.ContainsFunc(repairs, odd) {
		// It may be a folder of the user's to which only this was added.
		return []Repair{{Do: Disarm, Rel: f.Rel, Why: "git took it for a repository, and would run what is in it"}}
	}
	return repairs
}

// unlinked says why the git folder of a linked worktree cannot stay. It is empty if the folder takes everything from
// the repository that it lies in, and belongs to a checkout that leads back to it.
func (j Judgement) unlinked(f Folder) string {
	const stray = "it belongs to no worktree that leads back to it"
	common, back := f.Entry("commondir"), f.Entry("gitdir")
	wasCommon, wasBack := f.before.Entry("commondir"), f.before.Entry("gitdir")
	isAsBefore := func(now, was *Entry) bool { return now == nil && was == nil || now != nil && now.same(was) }
	hadHead := (f.Entry("HEAD") == nil) == (f.before.Entry("HEAD") == nil)
	switch {
	case f.before != nil && hadHead && isAsBefore(common, wasCommon) && isAsBefore(back, wasBack):
		return ""
	case common == nil || back == nil:
		return stray
	case back.same(wasBack) || j.leadsBack(f, *back):
		if common.same(wasCommon) ||
			common.read && strings.TrimRight(common.text, "\n") == "../.." && j.place(path.Dir(path.Dir(f.Path))) {
			return ""
		}
	}
	// Most often it was made beside the project, in a folder that the sandbox had for itself.
	at, ok := dotGit(f.Path, back.text)
	if tree := path.Dir(at); ok && back.read && back.back == "" && !pathname.Below(tree, j.Root) {
		return "its worktree " + diag.Name(tree) + " was inside only, and is gone with what was not committed; " +
			"`worktrees` in a profile keeps such a folder"
	}
	return stray
}

// leadsBack reports whether a gitdir names the .git file of a checkout that names its folder.
func (j Judgement) leadsBack(f Folder, back Entry) bool {
	at, ok := dotGit(f.Path, back.text)
	if j.After.file(at) == nil {
		return ok && back.back == f.Path && !pathname.Below(at, j.Root)
	}
	return ok && back.read && j.pointsAt(at, f.Path)
}

// pointsAt reports whether a .git file was seen that leads to a folder.
func (j Judgement) pointsAt(file, folder string) bool {
	f := j.After.file(file)
	if f == nil {
		return false
	}
	to, ok := f.target()
	return ok && to == folder
}

// entry judges one name.
func (j Judgement) entry(f Folder, e Entry) (Repair, bool) {
	before, rule := f.before.Entry(e.Name), ruleOf(e.Name)
	at := path.Join(f.Rel, e.Name)
	aside := func(why string) (Repair, bool) { return Repair{Do: MoveAside, Rel: at, Why: why}, why != "" }
	switch {
	case e.Kind != beneath.Dir && e.same(before), rule.sort == ours && e.Kind == beneath.Dir:
		return Repair{}, false
	case rule.sort == unknown || rule.sort == onlyOld:
		if e.Kind == beneath.Dir && before != nil && before.Kind == beneath.Dir {
			return Repair{}, false
		}
		return aside(cmp.Or(rule.why, "git makes none of this name: other tools may obey it, or git"))
	case e.Kind == beneath.Link && e.Name == "HEAD" && e.read && strings.HasPrefix(e.text, "refs/") &&
		path.Clean(e.text) == e.text:
		return Repair{}, false // as git once made it
	case e.Kind != rule.kind():
		if e.Kind == beneath.Link || e.Kind == beneath.Special {
			return aside(writesThrough)
		}
		return aside("git makes it otherwise")
	case rule.sort == setting:
		return j.setting(f, e, at)
	case rule.sort == leads:
		return aside(j.leads(f, e))
	case strings.HasPrefix(e.Name, sharedIndex) && !f.before.isSplit():
		return aside("no index was split before: it would hide what is staged")
	case rule.sort == file && !(e.read && rule.may(e.text)):
		if top, _, inner := strings.Cut(e.Name, "/"); inner && ruleOf(top).sort == state {
			return Repair{Do: MoveAside, Rel: path.Join(f.Rel, top), Why: "git or your prompt would run what is in it"},
				true
		}
		return aside(cmp.Or(rule.why, "git does not write it like that"))
	}
	return Repair{}, false
}

// setting judges a configuration: what is harmless stays in it, and what was in it before.
func (j Judgement) setting(f Folder, e Entry, at string) (Repair, bool) {
	if j.OpenConfig && f.before != nil && e.read {
		return Repair{}, false
	}
	if !e.read {
		return Repair{Do: MoveAside, Rel: at, Why: "it cannot be read"}, true
	}
	own := map[Sum]bool{}
	if f.before != nil {
		for _, sum := range f.before.Own {
			own[sum] = true
		}
	}
	clean, dropped := gitconfig.Harmless([]byte(e.text), gitconfig.Judge{
		Own: func(e gitconfig.Entry) bool { return own[sumOf(e)] },
		Worktree: func(tree string) bool { // the checkout whose .git file leads here: git writes files there
			at, ok := leadsTo(f.Path, tree)
			return ok && j.pointsAt(at+"/.git", f.Path)
		},
		Local: j.local,
	})
	if len(dropped) == 0 {
		return Repair{}, false
	}
	const most = 8
	if more := len(dropped) - most; more > 0 {
		dropped = append(dropped[:most], fmt.Sprintf("%d more", more))
	}
	return Repair{Do: Rewrite, Rel: at, Content: clean, Why: strings.Join(dropped, ", ")}, true
}

// local reports whether the path of a remote leads to a repository that is the user's or was judged, because git runs
// hooks there. A repository elsewhere does not count, as a rule: what git fetches from it, the agent could read.
func (j Judgement) local(at string) bool {
	if rel, below := strings.CutPrefix(at, j.Root+"/"); below && path.Clean(rel) == rel {
		at = path.Clean(at) // the root is no link, so ".." is what stands before it
	}
	if !path.IsAbs(at) || path.Clean(at) != at {
		return false
	}
	return j.place(at) || j.place(at+"/.git") || !pathname.Below(at, j.Root) && j.Foreign != nil && j.Foreign(at)
}

// leads says why a file may not lead where it does; empty: it may.
func (j Judgement) leads(f Folder, e Entry) string {
	switch {
	case e.Name == "gitdir" && f.Role == Linked, e.Name == "commondir" && f.Role == Linked:
		return "" // judged with its folder
	case e.Name == "commondir" && e.read && e.text == SamePlace:
		return ""
	case e.Name == "objects/info/alternates" && e.read:
		for line := range strings.Lines(e.text) {
			at, ok := leadsTo(f.Path+"/objects", strings.TrimRight(line, "\n"))
			if !ok || path.Base(at) != "objects" || !j.place(path.Dir(at)) {
				return "git would run in the repository that it leads to"
			}
		}
		return ""
	}
	return elsewhere
}

// SamePlace is the text of a commondir that changes nothing: git finds everything in the folder that the file is in.
const SamePlace = "./\n"

// file says why a .git file may not stay; empty: it may.
func (j Judgement) file(f File) string {
	was := j.Before.file(f.Path)
	switch {
	case was != nil && was.Kind == f.Kind && was.Stamp == f.Stamp && (was.Led || !f.Led):
		return ""
	case f.Kind != beneath.Regular:
		return "it is a link, or no file at all"
	case !f.read:
		return "it cannot be read, or is too large"
	}
	to, ok := f.target()
	folder, in := j.After.Folder(to), path.Base(path.Dir(to))
	own := j.Users != nil && j.Users(to)
	switch {
	case !ok:
		return "it leads to another place than it says"
	case to == "":
		return ""
	case !j.place(to):
		return "it leads to " + diag.Name(to) + ", which is no repository of yours"
	case own && j.Before.Folder(to) == nil &&
		(strings.Contains(to, "/modules/") || strings.Contains(to, "/worktrees/")):
		return "" // one that is to be the user's
	case folder == nil && in != "modules" && in != "worktrees",
		own && j.isWhole(to), folder != nil && folder.before != nil && folder.In == "":
		// relative paths of its configuration are others here
		return "it leads to " + diag.Name(to) + ", which has another checkout"
	}
	return ""
}

// isWhole reports whether a path was a repository before that lies in no other one's git folder.
func (j Judgement) isWhole(at string) bool {
	before := j.Before.Folder(at)
	return before != nil && before.In == ""
}

// joinRepairs replaces many repairs in one folder by one that moves the whole folder, and leaves out repeated repairs.
func joinRepairs(repairs []Repair) (kept []Repair) {
	const many = 20
	count := map[string]int{}
	for _, r := range repairs {
		count[path.Dir(r.Rel)]++
	}
	type step struct {
		do  Action
		rel string
	}
	told := map[step]bool{}
	for _, r := range repairs {
		if dir := path.Dir(r.Rel); r.Do == MoveAside && count[dir] > many && Known(path.Base(dir)) {
			r.Rel = dir
		}
		if s := (step{r.Do, r.Rel}); !told[s] {
			told[s] = true
			kept = append(kept, r)
		}
	}
	return kept
}
