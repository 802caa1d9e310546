package handover

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/workspace/hostrun"
)

// gather asks the user's git about all that a decision depends on, once the objects are there.
func gather(outer side, base, in, out Side, f facts) (facts, error) {
	f.ofUsers(outer.place, out)
	tips, have := newTips(outer.place, base, in, out)
	tips = slices.DeleteFunc(tips, func(tip string) bool { return f.refused[tip] != "" })
	broken := sift(tips, func(some []string) error { return outer.isWhole(some, have) })
	maps.Copy(f.refused, broken)
	tips = slices.DeleteFunc(tips, func(tip string) bool { return broken[tip] != "" })
	pairs := pairsOf(outer.place, base, in, out, f.put)
	script, stdin := question(tips, have, pairs, f.knows(outer.place, in))
	answer, err := outer.run(script, stdin, false)
	if err != nil {
		return f, err
	}
	parts := strings.Split(string(answer), separator)
	if len(parts) != 5 {
		return f, errOdd
	}
	f.kinds, f.forward = map[string]string{}, map[[2]string]bool{}
	peeled, last := map[string]string{}, ""
	for n, line := range lines(parts[0]) { // each object, and what it is a tag of
		object, kind, _ := strings.Cut(line, " ")
		if n%2 == 0 {
			f.kinds[object], last = kind, object
		} else if object != last {
			peeled[last] = object
		}
	}
	for _, line := range lines(parts[1]) {
		if words := strings.Fields(line); len(words) == 2 {
			f.forward[[2]string{words[0], words[1]}] = true
		}
	}
	for _, t := range outer.place.Trees {
		for _, at := range submodules(parts[4]) {
			f.links[t.Path+"/"+at] = f.links[t.Path+"/"+at] || !hostrun.IsFilled(at) // an agent may have written it
		}
	}
	f.foreign = inherited(parts[2], f.strangers(outer.place, parts[3]))
	for tag, object := range peeled {
		f.foreign[tag] = f.foreign[object]
	}
	for object, paths := range f.foreign {
		if n := slices.IndexFunc(paths, hostrun.IsFilled); n >= 0 {
			f.refused[object] = filled + diag.Visible(paths[n]) + filledRemedy
		}
	}
	return f, nil
}

// filled is said of what brings a repository to where nothing is held back: the user's git would obey what an agent
// makes there. It does not cross, at the end of a session either.
const (
	filled       = "it brings a submodule where tools fill a folder, "
	filledRemedy = ", and nothing is held back there; take it out of the commits, or fetch them outside"
)

// ofUsers notes which branches the agent cannot see checked out, and which repositories are the user's.
func (f *facts) ofUsers(p Place, out Side) {
	f.taken, f.links = map[string]bool{}, map[string]bool{}
	given := map[string]bool{}
	for _, t := range p.Trees {
		given[strings.TrimPrefix(out.Trees[t.Rel].Head, "ref: ")] = true
		for _, at := range out.Trees[t.Rel].Index.links() {
			f.links[t.Path+"/"+at] = true
		}
	}
	for ref, tree := range out.Taken {
		f.taken[ref] = !given[ref] && (p.Branch == "" || tree != p.Checkout())
	}
}

// knows reports whether all repositories in the agent's indexes are known to be the user's.
func (f *facts) knows(p Place, in Side) bool {
	return !slices.ContainsFunc(p.Trees, func(t Tree) bool {
		strange := func(at string) bool { return !f.links[t.Path+"/"+at] }
		return slices.ContainsFunc(in.Trees[t.Rel].Index.links(), strange)
	})
}

// question returns a script and its input. Its answer has five parts: what the new objects are; which of two commits
// comes after the other; the new commits, each with its parents; all changes in these; and, unless nothing is new and
// all repositories are known, the .gitmodules of the user's branches: what those name as submodules is the user's.
func question(tips, have []string, pairs [][2]string, known bool) (script, input string) {
	var b, stdin strings.Builder
	b.WriteString(prelude + inCommon)
	since := since(tips, have)
	if len(tips) > 0 {
		var both []string
		for _, tip := range tips {
			both = append(both, tip, tip+"^{}")
		}
		text := ended(both)
		stdin.WriteString(text)
		fmt.Fprintf(&b, "head -c %d | g cat-file --batch-check='%%(objectname) %%(objecttype)' || exit 1\n", len(text))
	}
	b.WriteString("mark\n")
	for _, pair := range pairs {
		fmt.Fprintf(&b, "if g merge-base --is-ancestor %s %s 2>/dev/null; then echo %[1]s %[2]s; fi\n",
			pair[0], pair[1])
	}
	b.WriteString("mark\n")
	if len(tips) > 0 {
		stdin.WriteString(since)
		fmt.Fprintf(&b, changesOf, len(since))
	} else {
		b.WriteString("mark\n")
	}
	b.WriteString("mark\n")
	if len(have) > 0 && (len(tips) > 0 || !known) {
		names := strings.Join(have, ":.gitmodules\n") + ":.gitmodules\n"
		stdin.WriteString(names)
		fmt.Fprintf(&b, "head -c %d | g cat-file --batch || exit 1\n", len(names))
	}
	return b.String(), stdin.String()
}

// changesOf is the part of a script that lists the commits of so many bytes of input, each before its parents, and then
// all changes in them, of merges to each parent.
const changesOf = `commits=$(head -c %d | g rev-list --topo-order --parents --stdin) || exit 1
printf '%%s\n' "$commits"
mark
printf '%%s\n' "$commits" | g diff-tree --stdin -r -m --root -z --raw --no-abbrev --no-renames \
  --ignore-submodules=none | tr '\n\1' '??'
`

// ended are words, each in a line.
func ended(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, "\n") + "\n"
}

// since lists commits for `git rev-list --stdin`: all that tips have and the others have not.
func since(tips, have []string) string {
	if len(have) == 0 {
		return ended(tips)
	}
	return ended(tips) + "^" + strings.Join(have, "\n^") + "\n"
}

// sift asks for some objects at once, then for halves of what is refused, and returns the objects that are refused by
// themselves, and why: few are.
func sift(objects []string, ask func(some []string) error) map[string]string {
	const most = 400
	refused := map[string]string{}
	queue := [][]string{objects}
	for n := 0; n < len(queue); n++ {
		some := queue[n]
		if len(some) == 0 {
			continue
		}
		err := errors.New("it came with too many that are refused")
		if n < most {
			err = ask(some)
		}
		switch half := len(some) / 2; {
		case err == nil:
		case half > 0 && n < most:
			queue = append(queue, some[:half], some[half:])
		default:
			for _, object := range some {
				refused[object] = err.Error()
			}
		}
	}
	return refused
}

// isWhole fails if some objects that have not been there before refer to one that is not there.
func (s side) isWhole(tips, have []string) error {
	if len(tips) == 0 {
		return nil
	}
	_, err := s.run(prelude+inCommon+"g rev-list --objects --quiet --stdin || exit 1", since(tips, have), false)
	return err
}

// newTips lists the objects that the references of the inner repository name and the user's do not, and all that the
// user's name.
func newTips(p Place, base, in, out Side) (tips, have []string) {
	known := map[string]bool{}
	for _, object := range out.Refs {
		known[object] = true
	}
	for _, t := range p.Trees {
		if head := out.Trees[t.Rel].Head; isObject(head) {
			known[head] = true
		}
	}
	fresh := map[string]bool{}
	add := func(object string) {
		if isObject(object) && !known[object] {
			fresh[object] = true
		}
	}
	for name, object := range in.Refs {
		if base.Refs[name] != object {
			add(object)
		}
	}
	for _, s := range in.Stash {
		if p.Branch == "" && !slices.Contains(base.Stash, s) && !slices.Contains(out.Stash, s) {
			add(s.Object)
		}
	}
	for _, t := range p.Trees {
		add(in.Trees[t.Rel].Head)
	}
	return slices.Sorted(maps.Keys(fresh)), slices.Sorted(maps.Keys(known))
}

// pairsOf lists commits of which it must be known whether the second comes after the first.
func pairsOf(p Place, base, in, out Side, put put) (pairs [][2]string) {
	both := func(a, b string) {
		if a != "" && b != "" && a != b {
			for _, pair := range [][2]string{{a, b}, {b, a}} {
				if !slices.Contains(pairs, pair) {
					pairs = append(pairs, pair)
				}
			}
		}
	}
	for name, i := range in.Refs {
		if o := out.Refs[name]; i != o && i != base.Refs[name] && o != base.Refs[name] {
			both(i, o)
			if p.Branch != "" {
				both(base.Refs[name], o)
				both(base.Refs[name], i)
			}
		}
	}
	for _, t := range p.Trees {
		if ref, is := strings.CutPrefix(base.Trees[t.Rel].Head, "ref: "); is && in.Refs[ref] == "" {
			both(base.Refs[ref], in.commit(t.Rel))
		}
		if in.Trees[t.Rel].Index != out.Trees[t.Rel].Index {
			both(in.commit(t.Rel), out.commit(t.Rel))
			if len(put.out)+len(put.in) > 0 {
				both(base.commit(t.Rel), in.commit(t.Rel))
				both(base.commit(t.Rel), out.commit(t.Rel))
			}
		}
	}
	return pairs
}

// inherited returns, for each of some commits that has any, the paths that became foreign repositories in it or in
// those before it. text lists the commits with their parents, each before these.
func inherited(text string, own map[string][]string) map[string][]string {
	all := map[string][]string{}
	commits := lines(text)
	for _, line := range slices.Backward(commits) {
		commit, parents, _ := strings.Cut(line, " ")
		paths := own[commit]
		for parent := range strings.FieldsSeq(parents) {
			if more := all[parent]; len(paths) == 0 {
				paths = more // all commits that come after share it
			} else if len(more) > 0 && &more[0] != &paths[0] {
				paths = slices.Concat(paths, more)
				slices.Sort(paths)
				paths = slices.Compact(paths)
			}
		}
		if len(paths) > 0 {
			all[commit] = paths
		}
	}
	return all
}

// strangers returns, by commit, the paths in what [changesOf] printed that became repositories which are none of the
// user's.
func (f *facts) strangers(p Place, text string) map[string][]string {
	found := map[string][]string{}
	commit := ""
	fields := strings.Split(text, "\x00")
	for n := 0; n+1 < len(fields); n++ {
		words := strings.Fields(fields[n])
		switch {
		case len(words) == 1 && isObject(words[0]):
			commit = words[0]
		case len(words) == 5 && strings.HasPrefix(words[0], ":"):
			n++
			at := fields[n]
			known := words[1] != gitlink || slices.ContainsFunc(p.Trees, func(t Tree) bool {
				return f.links[t.Path+"/"+at]
			})
			if name := printable(at); !known && !slices.Contains(found[commit], name) {
				found[commit] = append(found[commit], name)
			}
		}
	}
	return found
}

// links lists the paths of an index that are repositories of their own.
func (i Index) links() (list []string) {
	if !strings.Contains(string(i), gitlink+" ") {
		return nil
	}
	for _, e := range i.entries() {
		if e.isLink() {
			list = append(list, e.Path)
		}
	}
	return list
}

// submodules lists the paths in the text of .gitmodules files. They only say what is the user's, who has written them.
func submodules(text string) (list []string) {
	for line := range strings.Lines(text) {
		key, value, is := strings.Cut(strings.TrimSpace(line), "=")
		at := strings.Trim(strings.TrimSpace(value), `"`)
		if is && strings.TrimSpace(key) == "path" && at != "" && path.Clean("/"+at) == "/"+at {
			list = append(list, at)
		}
	}
	return list
}

// intends asks git what is only intended, where an index has new empty files.
func (l *live) intends(base, in, out Side) (all intends, err error) {
	if l.place.Branch != "" {
		return all, nil
	}
	if all.in, err = l.inner().intends(base, in); err == nil {
		all.out, err = l.outer().intends(base, out)
	}
	return all, err
}

// intendsScript prints twice what an index has changed since HEAD, with what is only intended and without.
const intendsScript = `export GIT_DIR=%s
h=$(g rev-parse -q --verify HEAD) || h=$(g hash-object -t tree /dev/null)
for how in visible invisible; do g diff-index --cached --name-status -z --ita-$how-in-index "$h" || exit 1; mark; done
`

func (s side) intends(base, is Side) (list map[string]bool, err error) {
	for _, t := range s.place.treesOf(!s.boxed) {
		if !is.Trees[t.Rel].Index.hasNewEmpty(base.Trees[t.Rel].Index) {
			continue
		}
		answer, err := s.run(prelude+fmt.Sprintf(intendsScript, diag.Quote(s.place.dir(t))), "", false)
		parts := strings.Split(string(answer), separator)
		if err != nil || len(parts) != 3 {
			return nil, cmp.Or(err, errOdd)
		}
		if list == nil {
			list = map[string]bool{}
		}
		without := statuses(parts[1])
		for at, status := range statuses(parts[0]) {
			if without[at] != status {
				list[t.Path+"/"+at] = true
			}
		}
	}
	return list, nil
}

// statuses are the paths that git prints with --name-status -z, with their status.
func statuses(text string) map[string]string {
	all, fields := map[string]string{}, strings.Split(text, "\x00")
	for n := 0; n+1 < len(fields); n += 2 {
		all[fields[n+1]] = fields[n]
	}
	return all
}

// empties are the names of the empty file, of SHA-1 and SHA-256.
var empties = []string{
	"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
}

// hasNewEmpty reports whether an index has an empty file that it had not, or not as one.
func (i Index) hasNewEmpty(base Index) bool {
	isEmpty := func(e Entry) bool {
		return slices.ContainsFunc(e.objects(), func(o string) bool { return slices.Contains(empties, o) })
	}
	if i == base || !strings.Contains(string(i), empties[0]) && !strings.Contains(string(i), empties[1]) {
		return false
	}
	list := slices.DeleteFunc(i.entries(), func(e Entry) bool { return !isEmpty(e) })
	was := base.at(list)
	return slices.ContainsFunc(list, func(e Entry) bool { return was[e.Path] != e.Stages })
}
