package handover

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// gather asks the user's git about all that a decision depends on, once the objects are there.
func gather(outer side, base, in, out Side, f facts) (facts, error) {
	f.ofUsers(outer.place, out)
	tips, have := newTips(outer.place, base, in, out)
	tips = slices.DeleteFunc(tips, func(tip string) bool { return f.refused[tip] != "" })
	tips = f.whole(outer, tips, have)
	script, stdin := question(outer.place, tips, have, pairsOf(outer.place, base, in, out), f.knows(outer.place, in))
	answer, err := outer.run(script, stdin, false)
	if err != nil {
		return f, err
	}
	parts := strings.Split(string(answer), separator)
	if len(parts) != 4 {
		return f, errOdd
	}
	f.kinds, f.forward = map[string]string{}, map[[2]string]bool{}
	for _, line := range lines(parts[0]) {
		if object, kind, is := strings.Cut(line, " "); is {
			f.kinds[object] = kind
		}
	}
	for _, line := range lines(parts[1]) {
		if words := strings.Fields(line); len(words) == 2 {
			f.forward[[2]string{words[0], words[1]}] = true
		}
	}
	for _, t := range outer.place.Trees {
		for _, at := range submodules(parts[3]) {
			f.links[t.Path+"/"+at] = true
		}
	}
	return f, f.addForeign(outer, tips, have, parts[2])
}

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

// question returns a script and its input. Its answer has four parts: what the new objects are; which of two commits
// comes after the other; all changes in the new commits; and, unless nothing is new and all repositories are known, the
// .gitmodules of the user's branches: what those name as submodules is the user's.
func question(p Place, tips, have []string, pairs [][2]string, known bool) (script, input string) {
	var b, stdin strings.Builder
	b.WriteString(prelude + inCommon)
	text, since := ended(tips), since(tips, have)
	if len(tips) > 0 {
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
		fmt.Fprintf(&b, "head -c %d | %s\n", len(since), changesOf)
	}
	b.WriteString("mark\n")
	if len(have) > 0 && (len(tips) > 0 || !known) {
		names := strings.Join(have, ":.gitmodules\n") + ":.gitmodules\n"
		stdin.WriteString(names)
		fmt.Fprintf(&b, "head -c %d | g cat-file --batch || exit 1\n", len(names))
	}
	return b.String(), stdin.String()
}

// changesOf is the part of a script that lists all changes in the commits on its input, of merges to each parent.
const changesOf = "g rev-list --stdin | g diff-tree --stdin -r -m --root -z --raw --no-abbrev --no-renames " +
	"--ignore-submodules=none --no-commit-id | tr '\\n' '?'"

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

// whole returns those of some new objects that refer to nothing that is not there, and refuses the others.
func (f *facts) whole(outer side, tips, have []string) []string {
	if outer.isWhole(tips, have) == nil {
		return tips
	}
	return slices.DeleteFunc(tips, func(tip string) bool {
		err := outer.isWhole([]string{tip}, have)
		if err != nil {
			f.refused[tip] = err.Error()
		}
		return err != nil
	})
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
	for _, t := range p.Trees {
		add(in.Trees[t.Rel].Head)
	}
	return slices.Sorted(maps.Keys(fresh)), slices.Sorted(maps.Keys(known))
}

// pairsOf lists commits of which it must be known whether the second comes after the first.
func pairsOf(p Place, base, in, out Side) (pairs [][2]string) {
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
			}
		}
	}
	for _, t := range p.Trees {
		if ref, is := strings.CutPrefix(base.Trees[t.Rel].Head, "ref: "); is && in.Refs[ref] == "" {
			both(base.Refs[ref], in.commit(t.Rel))
		}
		if in.Trees[t.Rel].Index != out.Trees[t.Rel].Index {
			both(in.commit(t.Rel), out.commit(t.Rel))
		}
	}
	return pairs
}

// addForeign notes the new commits that have a repository in them which is none of the user's. text lists all changes
// of all of them.
func (f *facts) addForeign(outer side, tips, have []string, text string) error {
	f.foreign = map[string][]string{}
	found := f.strangers(outer.place, text)
	switch {
	case len(found) == 0:
		return nil
	case len(tips) == 1:
		f.foreign[tips[0]] = found
		return nil
	}
	for _, tip := range tips {
		answer, err := outer.run(prelude+inCommon+changesOf, since([]string{tip}, have), false)
		if err != nil {
			return err
		}
		if found := f.strangers(outer.place, string(answer)); len(found) > 0 {
			f.foreign[tip] = found
		}
	}
	return nil
}

// strangers lists the paths in what `git diff-tree --raw -z` printed that became repositories which are none of the
// user's.
func (f *facts) strangers(p Place, text string) []string {
	found := map[string]bool{}
	fields := strings.Split(text, "\x00")
	for n := 0; n+1 < len(fields); n++ {
		words := strings.Fields(fields[n])
		if len(words) == 5 && strings.HasPrefix(words[0], ":") && words[1] == gitlink {
			at := fields[n+1]
			known := slices.ContainsFunc(p.Trees, func(t Tree) bool { return f.links[t.Path+"/"+at] })
			if !known {
				found[printable(at)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
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
