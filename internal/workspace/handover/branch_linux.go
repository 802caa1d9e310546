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

// onBranchScript puts a new inner folder on its branch.
func onBranchScript(p Place) string {
	return fmt.Sprintf(`export GIT_DIR=$C
g rev-parse --verify -q %[1]s >/dev/null || g update-ref %[1]s %[2]s || exit 1
g symbolic-ref HEAD %[1]s && g update-ref -d refs/stash || exit 1
`, diag.Quote("refs/heads/"+p.Branch), diag.Quote(cmp.Or(p.Start, "HEAD")))
}

// Work is a box with the inner folder of a place and a working tree, both to be written to.
type Work struct {
	Place Place
	Tools Tools
	Tree  *os.File      // the working tree; it may be open for its path only
	At    string        // its path in the box
	Time  time.Duration // how long it may take
}

// again is the working tree, for a process of its own: bwrap does not start with one that cannot be had.
func (w *Work) again() *os.File {
	fd, err := unix.FcntlInt(w.Tree.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	return os.NewFile(uintptr(fd), "tree")
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
		case i == b && b == "" && strings.HasPrefix(name, "refs/heads/"+ours+p.Branch+"/"): // the session made it
		case i == b && (name == own || inner.Taken[name] != ""): // it is checked out inside
			d.showUsers(name, o, known)
		case i == b && o != "" && inTheWay(name, inner): // the agent has another one in its place
		case i == b:
			d.in.Refs = append(d.in.Refs, RefChange{name, o, i})
			d.common(name, o)
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
		head := inner.Trees[t.Rel].Head
		isKnown := slices.Contains(slices.Collect(maps.Values(inner.Refs)), head)
		if isObject(head) && f.kinds[head] == "commit" && f.refused[head] == "" && !isKnown {
			d.beside(p, "detached", head, outer, known)
		}
		if under := inner.Trees[t.Rel].UnderWay; len(under) > 0 {
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
	contains := func(of string) bool { return f.forward[[2]string{o, of}] }
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
	case o == b, contains(i) && !contains(b):
		d.out.Refs = append(d.out.Refs, RefChange{name, i, o})
		d.common(name, i)
	default:
		d.showUsers(name, o, known)
		remark("it moved on both sides; yours stays")
	}
	if paths := f.foreign[i]; len(paths) > 0 {
		d.tell(name, "it names repositories that are not part of it: "+diag.Some(paths, 3))
	}
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
	known[name] = i
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
