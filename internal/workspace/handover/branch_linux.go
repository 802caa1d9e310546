package handover

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// A session on a branch has a checkout of its own, which is none of the user's: HEAD, index, stashes and tags stay on
// their side. Only branches cross.

// checkouts is where the user's git sees those of sessions on a branch. Nothing is there.
const checkouts = "/run/claudebox/branches/"

// Checkout is the path that the user's git shows for the checkout of a branch.
func (p Place) Checkout() string { return checkouts + p.Branch }

// Flaw says what keeps a branch of a name from crossing; empty: nothing.
func Flaw(branch string) string { return flaw("refs/heads/" + branch) }

// treesOf are the checkouts that count on one side: the user's are none of a branch's business.
func (p Place) treesOf(users bool) []Tree {
	if users && p.Branch != "" {
		return nil
	}
	return p.Trees
}

// putOnBranch puts an inner folder on its branch. Nothing of the agent's is in it yet: it needs no box.
func (l *live) putOnBranch(outside Side) error {
	p, own, changes := l.place, "refs/heads/"+l.place.Branch, "delete refs/stash\n"
	if outside.Refs[own] == "" {
		changes += "create " + own + " " + cmp.Or(p.Start, "HEAD") + "\n"
	}
	script := fmt.Sprintf("export GIT_DIR=$C GIT_ALTERNATE_OBJECT_DIRECTORIES=%s\n"+
		"g update-ref --stdin && g symbolic-ref HEAD %s\n", diag.Quote(escaped(p.Outer+"/objects")), diag.Quote(own))
	alone := outerOf(Place{Outer: p.Inner(), Folder: p.Folder}, l.Tools)
	_, err := alone.run(prelude+script, changes, true)
	return err
}

// escaped is a path as git reads it in a list with colons.
func escaped(at string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(at) + `"`
}

// asMade is what a new inner folder holds, if it was made of what the user's side held; known is false if it must be
// read.
func (p Place) asMade(outside Side) (inside Side, known bool) {
	if p.Branch == "" {
		isMissing := func(t Tree) bool { return outside.Trees[t.Rel].Head == "" }
		return outside, !slices.ContainsFunc(p.Trees, isMissing)
	}
	own := "refs/heads/" + p.Branch
	inside = Side{
		Refs: maps.Clone(outside.Refs), Odd: outside.Odd, Taken: map[string]string{own: p.Trees[0].Path},
		Trees: map[string]State{p.Trees[0].Rel: {Head: "ref: " + own, NoIndex: true}},
	}
	inside.Refs[own] = cmp.Or(outside.Refs[own], p.Start)
	return inside, inside.Refs[own] != ""
}

// Work is a box with the inner folder of a place and a working tree, both to be written to.
type Work struct {
	Place Place
	Tools Tools
	Tree  *os.File      // the working tree; it may be open for its path only
	At    string        // its path in the box
	Time  time.Duration // how long it may take
}

// again is what a descriptor is open for, for a process of its own: bwrap does not start with one that cannot be had.
func again(of int) *os.File {
	fd, err := unix.FcntlInt(uintptr(of), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	return os.NewFile(uintptr(fd), "bound")
}

// Run runs a script, in which g is git. Hooks do not run, and nothing leaves the box but what the script prints. bind
// are further files and folders, read-only.
func (w Work) Run(ctx context.Context, script, input string, bind ...string) ([]byte, error) {
	s := innerOf(w.Place, w.Tools)
	s.work = &w
	return s.runIn(ctx, prelude+sameScript(w.Place)+"export GIT_DIR=$C\n"+script, input, true, bind...)
}

// Ask runs a script on the user's repository in a box that writes nothing. bind are further folders, read-only.
func Ask(p Place, tools Tools, script string, bind ...string) ([]byte, error) {
	return outerOf(p, tools).contained().run(prelude+script, "", false, bind...)
}

// besideOf begins the key of a branch's name beside.
const besideOf = "beside: "

// madeInside begins the key by which a branch that the session made is known.
const madeInside = "made inside: "

// onBranch decides on branches only. Out go the session's own, NAME and those that it made, as long as the user's are
// what crossed last, or the session's contain what the user has made of them. What the agent did to a branch of the
// user's, or has no place, gets a name beside, claudebox/NAME/BRANCH. In go the user's that the session did not move.
func (d *decision) onBranch(p Place, base, inner, outer Side, known map[string]string, f facts) {
	for _, t := range p.Trees {
		d.next.Trees[t.Rel] = State{Head: inner.Trees[t.Rel].Head}
	}
	own := "refs/heads/" + p.Branch
	for _, name := range unionKeys(inner.Refs, outer.Refs, base.Refs) {
		b, i, o := base.Refs[name], inner.Refs[name], outer.Refs[name]
		isBranch := strings.HasPrefix(name, "refs/heads/")
		if isBranch && i != "" && b == "" && o == "" {
			known[madeInside+name] = i
		}
		switch mine := name == own || known[madeInside+name] != ""; {
		case i == o:
			d.common(name, i)
			d.united(name, outer, known, f)
		case i == b && b == "" && strings.HasPrefix(name, "refs/heads/"+ours+p.Branch+"/"): // the session made it
		case i == b && (name == own || inner.Taken[name] != ""): // it is checked out inside
			d.showUsers(name, o, known)
			d.united(name, outer, known, f)
		case i == b && o != "" && inTheWay(name, inner): // the agent has another one in its place
		case i == b:
			d.in.Refs = append(d.in.Refs, RefChange{name, o, i})
			d.common(name, o)
			d.united(name, outer, known, f)
		case isBranch:
			d.outwards(p, name, mine, base, inner, outer, known, f)
		case strings.HasPrefix(name, "refs/tags/"):
			d.wait(name, "a tag that was made or moved inside; tags stay there")
		}
	}
	for _, name := range inner.Odd {
		if strings.HasPrefix(name, "refs/heads/") {
			d.wait(name, "its name does not cross: "+flaw(name)+"; give it a plain name")
		}
	}
	for _, t := range p.Trees {
		head, under := inner.Trees[t.Rel].Head, inner.Trees[t.Rel].UnderWay
		isKnown := slices.Contains(slices.Collect(maps.Values(inner.Refs)), head)
		isOwn := !slices.ContainsFunc(under, isRebase) // else git moves a branch there when it is through
		if isObject(head) && f.kinds[head] == "commit" && f.refused[head] == "" && !isKnown && isOwn {
			d.beside(p, "detached", head, outer, known)
		}
		if len(under) > 0 {
			d.wait(p.Branch, operation(under)+" is under way inside; the next session on this branch goes on with it")
		}
	}
}

// outwards decides on a branch that the agent has moved.
func (d *decision) outwards(p Place, name string, mine bool, base, inner, outer Side,
	known map[string]string, f facts,
) {
	b, i, o := base.Refs[name], inner.Refs[name], outer.Refs[name]
	branch := strings.TrimPrefix(name, "refs/heads/")
	after := func(one, other string) bool { return f.forward[[2]string{one, other}] }
	wentBack := after(o, b) && after(b, i) // the user did, and the agent went on from where it was
	remark := func(why string) {
		d.wait(name, why+"; "+forkedTo+d.beside(p, branch, i, outer, known))
	}
	switch {
	case i == "" && mine && name != "refs/heads/"+p.Branch && o == b && !f.taken[name]:
		d.out.Refs = append(d.out.Refs, RefChange{name, "", o})
		d.common(name, "")
		delete(known, madeInside+name)
	case i == "": // the user's stays
	case f.refused[i] != "":
		d.wait(name, "your git does not take it: "+f.refused[i])
	case f.kinds[i] != "" && f.kinds[i] != "commit":
		d.wait(name, "it is no commit")
	case !mine:
		remark("it is yours, and stays")
	case f.taken[name]:
		remark("it is checked out in a worktree of yours, and stays")
	case o == "" && b != "":
		remark("you removed it, and the agent went on with it")
	case o == "" && (inTheWay(name, outer) || shadows(name, outer)):
		remark("a branch, tag or remote branch of yours is in the way of its name")
	case o == b, f.had.inside[name] == o, after(o, i) && !wentBack:
		d.out.Refs = append(d.out.Refs, RefChange{name, i, o})
		d.common(name, i)
		d.united(name, outer, known, f)
	case after(i, o), f.had.outside[name] == i: // nothing of it is the agent's alone
		d.common(name, i)
		d.showUsers(name, o, known)
		d.united(name, outer, known, f)
	default:
		d.showUsers(name, o, known)
		remark("it moved on both sides; yours stays")
	}
	if paths := f.foreign[i]; len(paths) > 0 {
		d.tell(name, "it names repositories that are not part of it: "+diag.Some(paths, 3))
	}
}

// had says, of branches that moved on both sides, which of them one side has had meanwhile as the other has it now, and
// as what. Whoever had that has gone on from there: it is no other work.
type had struct{ inside, outside map[string]string }

// oldest is how many states of a branch are looked at, from the last one.
const oldest = 1000

// had asks both sides.
func (l *live) had(base, in, out Side) (both had, err error) {
	if l.place.Branch == "" {
		return both, nil
	}
	for _, name := range unionKeys(in.Refs) {
		b, i, o := base.Refs[name], in.Refs[name], out.Refs[name]
		if i == b || o == b || i == o || o == "" || !strings.HasPrefix(name, "refs/heads/") {
			continue
		}
		if both.inside == nil {
			both = had{map[string]string{}, map[string]string{}}
		}
		// A git that was killed may have left less.
		script := prelude + inCommon + fmt.Sprintf("g rev-list -g -n %d %s -- || :\n", oldest, diag.Quote(name))
		for _, of := range []struct {
			side   side
			had    map[string]string
			object string
		}{{l.inner(), both.inside, o}, {l.outer(), both.outside, i}} {
			answer, err := of.side.run(script, "", false)
			if err != nil {
				return both, err
			}
			list := lines(string(answer)) // the last one first
			if n := slices.Index(list, b); n >= 0 {
				list = list[:n] // before that is what both had in common
			}
			if slices.Contains(list, of.object) {
				of.had[name] = of.object
			}
		}
	}
	return both, nil
}

// isRebase reports whether what git has under way, by its name, takes HEAD away from a branch until it is through.
func isRebase(underWay string) bool { return strings.HasPrefix(underWay, "rebase-") }

// united takes a branch beside away, which had the agent's commits as long as the two sides were apart.
func (d *decision) united(name string, outer Side, known map[string]string, f facts) {
	key := besideOf + strings.TrimPrefix(name, "refs/heads/")
	at := known[key]
	if at == "" {
		return
	}
	if o := outer.Refs[at]; o != "" && o == known[at] && !f.taken[at] {
		d.out.Refs = append(d.out.Refs, RefChange{at, "", o})
		d.tell(at, "it is taken away: what the agent has is on "+strings.TrimPrefix(name, "refs/heads/")+" again")
	}
	delete(known, key)
	delete(known, at)
}

// showUsers shows the agent what the user has made of a branch that is checked out inside.
func (d *decision) showUsers(name, o string, known map[string]string) {
	ref := "refs/remotes/" + theirs + strings.TrimPrefix(name, "refs/heads/")
	if o != "" && known[ref] != o {
		known[ref] = o
		d.in.Refs = append(d.in.Refs, RefChange{ref, o, anyValue})
	}
}

// beside gives a commit of the agent's a name of its own outside, and returns that.
func (d *decision) beside(p Place, branch, i string, outer Side, known map[string]string) string {
	short := ours + p.Branch + "/" + branch
	if inTheWay("refs/heads/"+short, outer) {
		short = strings.ReplaceAll(short, "/", "-")
	}
	name := "refs/heads/" + short
	for n := 2; outer.Refs[name] != "" && outer.Refs[name] != known[name] && outer.Refs[name] != i; n++ {
		name = fmt.Sprintf("refs/heads/%s-%d", short, n) // the user has made something of it
	}
	if outer.Refs[name] != i {
		d.out.Refs = append(d.out.Refs, RefChange{name, i, outer.Refs[name]})
	}
	known[name], known[besideOf+branch] = i, name
	return strings.TrimPrefix(name, "refs/heads/")
}

// inTheWay reports whether git cannot make a branch, as another one is a folder above or below it.
func inTheWay(name string, outer Side) bool {
	for other := range outer.Refs {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			return true
		}
	}
	return false
}
