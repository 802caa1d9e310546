package handover

import (
	"maps"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/workspace/hostrun"
)

// facts are what git says of what both sides hold. They are values, so that [decide] is a function of values.
type facts struct {
	kinds   map[string]string    // of objects that are new outside: "commit", "tag" …
	foreign map[string][]string  // new commits → paths of repositories in them that are none of the user's
	forward map[[2]string]bool   // whether the second commit comes after the first
	taken   map[string]bool      // branches that are checked out where the agent cannot see it
	hidden  func(at string) bool // whether a path on the host is hidden from the agent
	held    func(at string) bool // whether it is read-only inside
	links   map[string]bool      // paths on the host of repositories that are the user's
	refused map[string]string    // objects that the user's git does not take, and why
	first   bool                 // the session begins: what the user has under way goes inside
	modules bool                 // submodules are looked at, also where nothing else has changed
	final   bool                 // the session is over: repositories that it made were judged
	chosen  map[string]Choice    // what the user wants of branches that moved on both sides, by reference
	put     put                  // what hand-overs have written, and is not in common yet
	intends intends
	had     had
}

// intends has, by path on the host, what `git add -N` has put into the inner and the outer indexes: git commits nothing
// of it, but it would of what a side then has of the other's.
type intends struct{ in, out map[string]bool }

// put has the paths of indexes that hand-overs have written, with their stages, by path on the host, until both sides
// were read with the same. Who still has what was put has changed nothing since.
type put struct{ out, in map[string]string }

func (p put) clone() put {
	fresh := put{map[string]string{}, map[string]string{}}
	maps.Copy(fresh.out, p.out)
	maps.Copy(fresh.in, p.in)
	return fresh
}

// forget drops what is in common in a checkout, all of it or at one path.
func (p put) forget(t Tree, paths ...string) {
	for _, side := range []map[string]string{p.out, p.in} {
		for _, at := range paths {
			delete(side, t.Path+"/"+at)
		}
		if len(paths) == 0 {
			maps.DeleteFunc(side, func(at, _ string) bool { return strings.HasPrefix(at, t.Path+"/") })
		}
	}
}

// Choice is what the user wants of a branch that moved on both sides.
type Choice int

const (
	_    Choice = iota
	Take        // the agent's commits
	Drop        // the user's own: the agent goes on from there
)

// refuses reports whether the user's git does not take one of some objects.
func (f facts) refuses(objects []string) bool {
	return slices.ContainsFunc(objects, func(o string) bool { return f.refused[o] != "" })
}

// Changes are what is to be done on one side.
type Changes struct {
	Refs    []RefChange
	Stashes []Stashed // that it gets, the newest first
	Dropped []Stashed
	Trees   []TreeChange
}

// RefChange sets a reference from an old value to a new one; empty: it does not exist.
type RefChange struct{ Name, New, Old string }

// TreeChange changes one checkout.
type TreeChange struct {
	Tree
	Expect State             // as HEAD, and the paths of Stage, must be when it is done
	Head   string            // empty: as it is
	Stage  []Entry           // without stages: taken out
	Files  map[string]string // of [stateFiles]; empty: removed
	Ended  []string          // of [underWay]: taken away, as the other side has ended it
	Copied []string          // of [underWay]: copied from the user's side
}

func (c Changes) none() bool { return len(c.Refs)+len(c.Stashes)+len(c.Dropped)+len(c.Trees) == 0 }

// decision is what is to be done on both sides.
type decision struct {
	out, in Changes
	next    Side // what both sides have in common then
	put     put  // what is written and not in common then
	remarks []Remark
	lost    bool // the agent's git folder is not the one that it was

	busyIn, busyOut map[string]string // see [busy]
}

// busy returns the branches that do not move meanwhile, inside and outside, with what is under way: HEAD is on them in
// a checkout whose HEAD and index wait. The next commit there would take back what came with the branch alone.
func busy(trees []Tree, base, inner, outer Side, first bool) (in, out map[string]string) {
	in, out = map[string]string{}, map[string]string{}
	for _, t := range trees {
		b, i, o := base.Trees[t.Rel], inner.Trees[t.Rel], outer.Trees[t.Rel]
		pastBisections(&b, &i, &o, first)
		inside, before, outside := len(i.UnderWay) > 0, len(b.UnderWay) > 0, len(o.UnderWay) > 0
		if !(inside && (outside || !before) || outside && !before && !first) {
			continue // there is none, or it has ended on one side
		}
		what := operation(i.UnderWay) + " is under way inside"
		if !inside {
			what = operation(o.UnderWay) + " is under way outside"
		}
		in[strings.TrimPrefix(i.Head, "ref: ")], out[strings.TrimPrefix(o.Head, "ref: ")] = what, what
	}
	return in, out
}

const lostText = "the agent's own git folder has lost your branches: nothing of it crosses; unless they are there " +
	"again, the next session has a new one, and `claudebox git` says then where this one is kept"

// lost reports whether the inner folder was made anew, or damaged: then what is not in it was not removed by anybody. A
// branch that was checked out does not go by itself, but by another name.
func lost(base, inner Side, f facts) bool {
	branches := 0
	for name := range base.Refs {
		if strings.HasPrefix(name, "refs/heads/") {
			branches++
			if inner.Refs[name] != "" {
				branches = -len(base.Refs)
			}
		}
	}
	here := map[string]bool{}
	for _, object := range inner.Refs {
		here[object] = true
	}
	for rel, t := range base.Trees {
		ref, is := strings.CutPrefix(t.Head, "ref: ")
		was := base.Refs[ref]
		if is && was != "" && inner.Refs[ref] == "" && branches > 0 && !here[was] &&
			inner.Trees[rel].Head != was && !f.forward[[2]string{was, inner.commit(rel)}] {
			return true
		}
	}
	return false
}

const (
	ours   = "claudebox/" // begins the branch that has the agent's commits where both sides moved one
	theirs = "user/"      // begins the tracking branch inside that has the user's
)

// decide compares what both sides hold with what they had in common last (base), for each thing by itself. What only
// one side changed goes to the other. Where both did, each keeps its own, unless one comes after the other.
func decide(p Place, base, inner, outer Side, known map[string]string, f facts) (d decision) {
	d.next, d.put = Side{Refs: maps.Clone(base.Refs), Trees: maps.Clone(base.Trees)}, f.put.clone()
	if d.next.Refs == nil {
		d.next.Refs = map[string]string{}
	}
	if d.next.Trees == nil {
		d.next.Trees = map[string]State{}
	}
	if lost(base, inner, f) {
		d.next = base
		d.wait(p.Outer, lostText)
		d.lost = true
		return d
	}
	if p.Branch != "" {
		d.onBranch(p, base, inner, outer, known, f)
		return d
	}
	d.busyIn, d.busyOut = busy(p.Trees, base, inner, outer, f.first)
	for _, name := range unionKeys(inner.Refs, outer.Refs, base.Refs) {
		d.ref(name, base.Refs[name], inner.Refs[name], outer.Refs[name], outer, known, f)
	}
	for _, name := range inner.Odd {
		if !strings.HasPrefix(name, "refs/replace/") && !strings.HasPrefix(name, "refs/remotes/"+theirs) &&
			strings.Count(name, "/") > 1 && hasAny(name, "refs/heads/", "refs/tags/") {
			d.wait(name, "its name does not cross: "+flaw(name)+"; give it a plain name")
		}
	}
	d.stash(base.Stash, inner.Stash, outer.Stash, f)
	for _, t := range p.Trees {
		d.tree(p, t, base, inner, outer, f)
		d.detached(t, inner, outer, known, f)
	}
	return d
}

// rules are how git makes the full name of a reference of a shorter one, see gitrevisions(7): text before and behind
// it.
var rules = [][2]string{
	{"", ""}, {"refs/", ""}, {"refs/tags/", ""}, {"refs/heads/", ""}, {"refs/remotes/", ""}, {"refs/remotes/", "/HEAD"},
}

// shadows reports whether a new reference can be written as one that the user has, in full or for short: git would
// take the one for the other, or say that it could.
func shadows(name string, outer Side) bool {
	for _, short := range rules {
		written, begins := strings.CutPrefix(name, short[0])
		written, ends := strings.CutSuffix(written, short[1])
		for _, full := range rules {
			other := full[0] + written + full[1]
			if begins && ends && written != "" && other != name && outer.Refs[other] != "" {
				return true
			}
		}
	}
	return false
}

func (d *decision) tell(about, text string) {
	d.remarks = append(d.remarks, Remark{About: about, Text: text, Once: true})
}

func (d *decision) wait(about, why string) {
	d.remarks = append(d.remarks, Remark{About: about, Text: why})
}

func (d *decision) ref(name, b, i, o string, outer Side, known map[string]string, f facts) {
	is := func(object string) bool { return object == "" || f.kinds[object] == "" || f.kinds[object] == "commit" }
	set := func(changes *Changes, to, from string) {
		why := d.busyIn[name]
		if changes == &d.out {
			why = d.busyOut[name]
		}
		if why != "" {
			d.wait(name, why+", and it waits until that ends")
			return
		}
		changes.Refs = append(changes.Refs, RefChange{name, to, from})
		d.common(name, to)
	}
	switch {
	case i == o:
		d.common(name, i)
	case i == b:
		set(&d.in, o, i)
	case f.refused[i] != "":
		d.wait(name, "your git does not take it: "+f.refused[i])
	case strings.HasPrefix(name, "refs/heads/") && !is(i):
		d.wait(name, "it is no commit")
	case len(f.foreign[i]) > 0 && !f.final:
		d.wait(name, "it brings a repository that the agent made, "+diag.Some(f.foreign[i], 3)+
			": it waits until the session ends")
	case f.taken[name]:
		d.wait(name, "it is checked out in another worktree of yours")
	case i != "" && o == "" && shadows(name, outer):
		d.wait(name, "yours has a branch, tag or remote branch of this name, which git would take it for")
	case o == b, i != "" && o != "" && f.forward[[2]string{o, i}]:
		set(&d.out, i, o)
		if i == "" && hasAny(name, "refs/heads/", "refs/tags/") {
			d.tell(name, "it was removed inside; it was "+o)
		}
	case i != "" && o != "" && f.forward[[2]string{i, o}]:
		set(&d.in, o, i)
	case i == "": // removed inside, and changed outside
		set(&d.in, o, i)
	case f.chosen[name] == Drop:
		set(&d.in, o, i)
		d.unname(strings.TrimPrefix(name, "refs/heads/"), outer, known)
	case f.chosen[name] == Take && outer.hasHead(name):
		d.wait(name, "you have it checked out: merge "+d.nameOf(strings.TrimPrefix(name, "refs/heads/"), outer, known))
	case f.chosen[name] == Take:
		set(&d.out, i, o)
		d.unname(strings.TrimPrefix(name, "refs/heads/"), outer, known)
	case !strings.HasPrefix(name, "refs/heads/"):
		d.wait(name, "both sides changed it; yours stays")
	default:
		d.fork(strings.TrimPrefix(name, "refs/heads/"), i, o, outer, known)
	}
}

// common notes that both sides have a reference in common.
func (d *decision) common(name, object string) {
	if object == "" {
		delete(d.next.Refs, name)
	} else {
		d.next.Refs[name] = object
	}
}

// forkedTo stands before the name that the agent's commits have.
const forkedTo = "the agent's commits are on "

// HasCrossed reports whether the remark is on commits that are on a branch of another name outside.
func (r Remark) HasCrossed() bool {
	return strings.HasPrefix(r.About, "refs/heads/") && strings.Contains(r.Text, forkedTo)
}

// fork gives each side the other's commits under another name. known has the agent's commits that were given a name
// before, by branch.
func (d *decision) fork(branch, i, o string, outer Side, known map[string]string) {
	name := d.nameOf(branch, outer, known)
	text := "it moved on both sides; yours stays, " + forkedTo + name
	if o == "" {
		text = "you removed it, and the agent went on with it; " + forkedTo + name
	}
	d.remarks = append(d.remarks, Remark{About: "refs/heads/" + branch, Text: text})
	if known[branch] == i {
		return
	}
	known[branch] = i
	d.out.Refs = append(d.out.Refs, RefChange{"refs/heads/" + name, i, outer.Refs["refs/heads/"+name]})
	if o != "" {
		d.in.Refs = append(d.in.Refs, RefChange{"refs/remotes/" + theirs + branch, o, anyValue})
	}
}

// nameOf returns the name that the agent's commits get, or have, where both sides moved a branch.
func (d *decision) nameOf(branch string, outer Side, known map[string]string) string {
	name := ours + branch
	taken := outer.Refs["refs/heads/"+name]
	if taken != "" && taken != known[branch] || outer.Refs["refs/heads/claudebox"] != "" {
		name = strings.ReplaceAll(ours, "/", "-") + branch
	}
	return name
}

// unname takes that name away, if it is where claudebox has put it.
func (d *decision) unname(branch string, outer Side, known map[string]string) {
	name := "refs/heads/" + d.nameOf(branch, outer, known)
	if at := outer.Refs[name]; at != "" && at == known[branch] {
		d.out.Refs = append(d.out.Refs, RefChange{name, "", at}) // inside it goes the next time
	}
	delete(known, branch)
}

// hasHead reports whether a branch is checked out.
func (s Side) hasHead(ref string) bool {
	for _, t := range s.Trees {
		if t.Head == "ref: "+ref {
			return true
		}
	}
	return false
}

// anyValue as the old value of a reference: whatever it has.
const anyValue = "any"

// stash merges the lists: what one side dropped is dropped, what one side added is added.
func (d *decision) stash(base, inner, outer []Stashed, f facts) {
	has := func(list []Stashed, of Stashed) bool {
		return slices.ContainsFunc(list, func(s Stashed) bool { return s.Object == of.Object })
	}
	var want []Stashed
	for _, s := range inner {
		switch why := f.refused[s.Object]; {
		case has(outer, s) || has(base, s):
		case why != "":
			d.wait("stash", "your git does not take "+s.Message+": "+why)
		default:
			want = append(want, s)
		}
	}
	for _, s := range outer {
		if has(inner, s) || !has(base, s) {
			want = append(want, s)
		}
	}
	without := func(list, of []Stashed) []Stashed {
		return slices.DeleteFunc(slices.Clone(list), func(s Stashed) bool { return has(of, s) })
	}
	d.out.Stashes, d.out.Dropped = without(want, outer), without(outer, want)
	for _, s := range d.out.Dropped {
		d.tell("stash", "it was dropped inside; it was "+s.Object+", "+s.Message)
	}
	if len(f.refused) == 0 {
		d.in.Stashes, d.in.Dropped = without(want, inner), without(inner, want)
	}
	d.next.Stash = want
}

// tree decides on HEAD, index, and what is under way in one checkout. They cross together, or wait together.
func (d *decision) tree(p Place, t Tree, base, inner, outer Side, f facts) {
	b, i, o := base.Trees[t.Rel], inner.Trees[t.Rel], outer.Trees[t.Rel]
	out, in := TreeChange{Tree: t, Expect: o}, TreeChange{Tree: t, Expect: i}
	about := t.Path
	begun := pastBisections(&b, &i, &o, f.first)
	switch {
	case o.Head == "":
		return // the user has taken it away
	case i.Head == "" && !i.HasHead:
		d.wait(about, "the agent took this checkout away inside; yours is as it was")
		return
	case i.NoIndex && b.Index != "" && o.Index != "": // else the checkout is new
		d.wait(about, "the agent has taken its index away: yours is as it was")
		return
	case len(i.UnderWay) > 0 && len(o.UnderWay) > 0 && !slices.Equal(i.UnderWay, b.UnderWay):
		d.wait(about, "an operation of git is under way on both sides: "+operation(i.UnderWay))
		return
	case len(i.UnderWay) > 0 && len(o.UnderWay) > 0:
		return // the same one, which goes on inside
	case len(i.UnderWay) > 0 && len(b.UnderWay) > 0:
		in.Ended = i.UnderWay // the user has ended it
	case len(i.UnderWay) > 0:
		d.wait(about, operation(i.UnderWay)+" is under way inside: HEAD and index wait until it ends; "+
			"`claudebox shell -- git status` shows it")
		return
	case len(o.UnderWay) > 0 && len(b.UnderWay) > 0:
		out.Ended = o.UnderWay // the agent has
	case len(o.UnderWay) > 0 && f.first:
		in.Copied = o.UnderWay
	case len(o.UnderWay) > 0:
		d.wait(about, operation(o.UnderWay)+" is under way outside: HEAD and index wait until it ends")
		return
	}
	next := State{Head: b.Head, Files: map[string]string{}, UnderWay: slices.Concat(in.Copied, begun)}
	together := d.head(t, base, inner, outer, f, &out, &in, &next)
	d.index(t, base, inner, outer, f, together, &out, &in, &next)
	stateFilesOf(p, t, [3]State{b, i, o}, f, together, &out, &in, &next)
	d.next.Trees[t.Rel] = next
	if !out.none() {
		d.out.Trees = append(d.out.Trees, out)
	}
	if !in.none() {
		d.in.Trees = append(d.in.Trees, in)
	}
}

// pastBisections takes bisections from what is under way that hold nothing up: those of a side that stands on a branch
// all the same, as after `git bisect start` alone. Commits move that branch then, and HEAD and index go with it. It returns
// what both sides have of that.
func pastBisections(base, inner, outer *State, first bool) (both []string) {
	log := []string{"BISECT_LOG"}
	has := func(side *State) bool { return slices.Contains(side.UnderWay, log[0]) }
	idle := func(side *State) bool { return has(side) && strings.HasPrefix(side.Head, "ref: ") }
	var past []*State
	switch {
	case idle(inner) && idle(outer):
		past, both = []*State{base, inner, outer}, log
	case idle(inner) && !has(outer) && !has(base): // the agent's alone
		past = []*State{inner}
	case idle(outer) && !has(inner) && !has(base) && !first: // the user's, begun meanwhile
		past = []*State{outer}
	}
	for _, side := range past {
		side.UnderWay = without(side.UnderWay, log)
	}
	return both
}

// without are the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// stateFilesOf decides on the small files beside an index: of the base, the inner and the outer side.
func stateFilesOf(p Place, t Tree, sides [3]State, f facts, together bool, out, in *TreeChange, next *State) {
	for _, file := range stateFiles {
		bf, inf, of := sides[0].Files[file.name], sides[1].Files[file.name], sides[2].Files[file.name]
		refused := file.objects && f.refuses(lines(inf))
		switch {
		case inf == of:
			setFile(&next.Files, file.name, inf)
		case of == bf && (!together || refused):
			setFile(&next.Files, file.name, bf)
		case of == bf:
			setFile(&out.Files, file.name, inf)
			setFile(&next.Files, file.name, inf)
		case slices.Contains(p.Secrets, path.Join(t.Rel, file.name)):
			setFile(&next.Files, file.name, bf)
		default:
			setFile(&in.Files, file.name, of)
			setFile(&next.Files, file.name, of)
		}
	}
}

// moves reports whether HEAD or index change.
func (c TreeChange) moves() bool { return c.Head != "" || len(c.Stage) > 0 }

func (c TreeChange) none() bool {
	return c.Head == "" && len(c.Stage)+len(c.Files)+len(c.Ended)+len(c.Copied) == 0
}

func setFile(files *map[string]string, name, text string) {
	if *files == nil {
		*files = map[string]string{}
	}
	(*files)[name] = text
}

// detached gives the agent's commits on no branch a name outside, where HEAD does not cross.
func (d *decision) detached(t Tree, inner, outer Side, known map[string]string, f facts) {
	const name = "refs/heads/" + ours + "detached"
	i, key := inner.Trees[t.Rel].Head, "HEAD of "+t.Rel
	if !isObject(i) || d.next.Trees[t.Rel].Head == i || i == known[key] || f.kinds[i] != "commit" ||
		len(f.foreign[i]) > 0 || f.refused[i] != "" {
		return
	}
	if taken := outer.Refs[name]; taken != "" && taken != known[key] {
		return // the remark on HEAD names the commit
	}
	known[key] = i
	d.out.Refs = append(d.out.Refs, RefChange{name, i, outer.Refs[name]})
}

// head decides on HEAD, and reports whether both sides stand on one commit then: else nothing that the agent staged
// comes into the user's index.
func (d *decision) head(t Tree, base, inner, outer Side, f facts, out, in *TreeChange, next *State) bool {
	b, i, o := base.Trees[t.Rel].Head, inner.Trees[t.Rel].Head, outer.Trees[t.Rel].Head
	next.Head = i
	switch {
	case i == o:
	case i == b, b == "", i == "":
		in.Head, next.Head = o, o
	case o != b:
		d.wait(t.Path, "HEAD was moved on both sides: outside it is "+short(o)+", inside "+short(i))
		next.Head = b
		return false
	case len(f.foreign[i]) > 0 && !f.final, f.kinds[i] != "" && f.kinds[i] != "commit":
		d.wait(t.Path, "HEAD waits: its commit brings a repository that the agent made")
		next.Head = b
		return false
	case f.refused[i] != "":
		d.wait(t.Path, "HEAD waits: your git does not take its commit: "+f.refused[i])
		next.Head = b
		return false
	case f.taken[strings.TrimPrefix(i, "ref: ")]:
		d.wait(t.Path, "HEAD is "+short(i)+" inside, which is checked out in another worktree of yours")
		next.Head = b
		return false
	default:
		out.Head = i
	}
	at := func(side Side, changes Changes) string {
		ref, is := strings.CutPrefix(next.Head, "ref: ")
		if !is {
			return next.Head
		}
		for _, c := range changes.Refs {
			if c.Name == ref {
				return c.New
			}
		}
		return side.Refs[ref]
	}
	together := at(inner, d.in) == at(outer, d.out)
	if out.Head != "" && !together { // its branch waits
		d.wait(t.Path, "HEAD waits: inside it is "+short(i)+", which is not the same on both sides; outside it is "+
			short(o))
		out.Head, next.Head = "", b
	}
	return together
}

func short(head string) string { return strings.TrimPrefix(head, "ref: refs/heads/") }

// index decides on each path of the index. Of a path that both sides changed, the side counts whose commit both sides
// have then; if there is none, each keeps its own. What the agent staged crosses only together with its commit. What
// crosses is in common once it is read on both sides: a `git commit` may write over an index that it read before.
func (d *decision) index(t Tree, base, inner, outer Side, f facts, together bool, out, in *TreeChange, next *State) {
	b, i, o := base.Trees[t.Rel].Index, inner.Trees[t.Rel].Index, outer.Trees[t.Rel].Index
	if i == o {
		next.Index = i
		d.put.forget(t)
		return
	}
	outwards, inwards := inner.commit(t.Rel), outer.commit(t.Rel)
	var shared []Entry // what the base is to have for paths that do not cross
	walk(b.entries(), i.entries(), o.entries(), func(at, was, inside, outside string) {
		// What crossed a moment ago is not in common yet. A side that does not have it any more has changed it since,
		// unless a commit wrote over it.
		on := t.Path + "/" + at
		if f.intends.in[on] {
			inside = was
		}
		if f.intends.out[on] {
			outside = was
			shared = append(shared, Entry{at, was})
		}
		if put, has := f.put.out[on]; has && !(outside == was && f.overwrote(t, base, outer)) {
			was = put
		} else if put, has := f.put.in[on]; has && !(inside == was && f.mayOverwrite(t, base, inner)) {
			was = put
		}
		if inside == outside {
			d.put.forget(t, at)
			return
		}
		switch why := f.bars(Entry{at, inside}, on, was, outside); {
		case why != "":
			d.wait(on, why)
			shared = append(shared, Entry{at, was})
		case inside != was && !together:
			shared = append(shared, Entry{at, was})
		case outside == was, inside != was && f.forward[[2]string{inwards, outwards}] && outwards != inwards:
			out.Stage = append(out.Stage, Entry{at, inside})
			d.put.forget(t, at)
			d.put.out[on] = inside
			shared = append(shared, Entry{at, was})
		case inside == was, f.forward[[2]string{outwards, inwards}] && outwards != inwards:
			in.Stage = append(in.Stage, Entry{at, outside})
			d.put.forget(t, at)
			d.put.in[on] = outside
			shared = append(shared, Entry{at, was})
		default:
			d.wait(on, "it was staged on both sides; yours stays")
			shared = append(shared, Entry{at, was})
		}
	})
	next.Index = o.with(shared)
}

// bars says why your index does not take an entry of the agent's at a path on the host; empty: it may.
func (f facts) bars(inside Entry, on, was, outside string) string {
	fresh := inside.Stages != was
	isStrange := inside.isLink() && !f.links[on]
	switch {
	case isStrange && fresh && hostrun.IsFilled(inside.Path):
		return filled + inside.Path + filledRemedy
	case isStrange && !f.final:
		return "it is a repository that the agent made: it waits until the session ends"
	case fresh && f.hidden(on):
		return "it was staged inside, and is hidden there: your index does not take it"
	case was == "" && outside == "" && f.held(on):
		return "it was added inside, where it is read-only or the agent's own: your index does not take it"
	case fresh && f.refuses(inside.objects()):
		return "it was staged inside, and your git does not take its content"
	}
	return ""
}

// overwrote reports whether a side has committed since both had the same: a `git commit` writes over what was put into
// an index that it had read before.
func (f facts) overwrote(t Tree, base, side Side) bool {
	return side.Trees[t.Rel].Head == base.Trees[t.Rel].Head &&
		f.forward[[2]string{base.commit(t.Rel), side.commit(t.Rel)}]
}

// mayOverwrite reports whether a side has committed since, or is about to. It is asked of the agent's: what the user
// staged is then not taken out.
func (f facts) mayOverwrite(t Tree, base, side Side) bool {
	return f.overwrote(t, base, side) ||
		side.Trees[t.Rel].Head == base.Trees[t.Rel].Head && side.commit(t.Rel) == base.commit(t.Rel)
}

// walk goes through three sorted lists at once, and calls each with a path and its stages in all of them.
func walk(b, i, o []Entry, each func(at, was, inside, outside string)) {
	for len(b)+len(i)+len(o) > 0 {
		var at string
		first := true
		for _, list := range [][]Entry{b, i, o} {
			if len(list) > 0 && (first || list[0].Path < at) {
				at, first = list[0].Path, false
			}
		}
		take := func(list *[]Entry) (stages string) {
			if len(*list) > 0 && (*list)[0].Path == at {
				stages, *list = (*list)[0].Stages, (*list)[1:]
			}
			return stages
		}
		was, inside, outside := take(&b), take(&i), take(&o)
		each(at, was, inside, outside)
	}
}

// operations are what git does, by the names of [underWay].
var operations = map[string]string{
	"rebase-merge": "a rebase", "rebase-apply": "a rebase or `git am`",
	"sequencer": "a cherry-pick or revert of several commits", "BISECT_LOG": "a bisection",
}

// operation says what is under way.
func operation(names []string) string {
	var texts []string
	for _, name := range names {
		texts = append(texts, operations[name])
	}
	return strings.Join(texts, ", ")
}

func hasAny(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}

// unionKeys returns the keys of maps, sorted, each once.
func unionKeys[V any](all ...map[string]V) []string {
	keys := map[string]bool{}
	for _, m := range all {
		for name := range m {
			keys[name] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
