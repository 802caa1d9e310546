package handover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/diag"
)

// Module is a submodule of a checkout on a branch that the user has as well. The agent's is a repository of its own, in
// the inner folder. What is committed there crosses to the user's: to the branch of the session's name, and never
// another way.
type Module struct {
	Path string // relative to the project
	Name string // its git folder, below `modules` of the repository's
	Git  string // the user's git folder; canonical
}

// carried is what is durable of what has crossed from a submodule.
type carried struct {
	Seen  string            // what it had when all of that had crossed
	Named map[string]string // the user's references that are there for it, and where they were put
}

const (
	// mostTips is how many branches of a submodule cross.
	mostTips = 1000
	// broken is said of a submodule that git cannot read.
	broken = "broken"
)

// at is a side of a repository that lies in a part of the inner folder. Links in there lead nowhere but in the box.
func (s side) at(part string) side {
	s.part = part
	return s
}

// modulesScript prints HEAD and the branches of submodules.
func modulesScript(list []Module) string {
	var b strings.Builder
	b.WriteString(prelude + `module() {
  export GIT_DIR=$1
  [ -e "$GIT_DIR" ] || return 0
  g rev-parse --git-dir >/dev/null 2>&1 || { echo ` + broken + `; return 0; }
  g rev-parse -q --verify 'HEAD^{commit}' || echo
  g symbolic-ref -q HEAD || echo
  g for-each-ref --count=` + fmt.Sprint(mostTips+1) + ` --format='%(objectname) %(refname)' refs/heads || echo ` + broken + `
}
`)
	for _, m := range list {
		fmt.Fprintf(&b, "module \"$C\"/modules/%s; mark\n", diag.Quote(m.Name))
	}
	return b.String()
}

// tip is a commit of the agent's in a submodule, and the branch on which it is to be. beside: not on that itself.
type tip struct {
	branch, commit string
	beside         bool
}

// tips reads what [modulesScript] printed of one submodule. What stands where its checkout is goes to the session's
// branch, unless the agent has made one of that name.
func (p Place) tips(text string) (list []tip, odd []string, err error) {
	if text == "" {
		return nil, nil, nil
	}
	all := lines(text)
	if len(all) < 2 || slices.Contains(all, broken) {
		return nil, nil, errOdd
	}
	if len(all) > mostTips+2 {
		return nil, nil, fmt.Errorf("it has more than %d branches", mostTips)
	}
	head, on := all[0], all[1]
	if head != "" && !isObject(head) {
		return nil, nil, errOdd
	}
	here := tip{branch: p.Branch, commit: head}
	for _, line := range all[2:] {
		object, ref, _ := strings.Cut(line, " ")
		branch, is := strings.CutPrefix(ref, "refs/heads/")
		switch {
		case !isObject(object) || !is:
			return nil, nil, errOdd
		case !crosses(ref):
			odd = append(odd, ref)
		case branch == p.Branch && on != ref:
			here = tip{"detached", head, true}
			fallthrough
		case on != ref:
			list = append(list, tip{branch: branch, commit: object})
		}
	}
	if head != "" {
		list = append([]tip{here}, list...)
	}
	return list, odd, nil
}

// carry brings what the agent has committed in submodules to the user's. It is done before the commits cross that name
// what is in them, and after these were read: so none names what is not there. It reports whether something crossed.
// What keeps one submodule from crossing is a remark: the rest goes on.
func (l *live) carry(m *memory) (changes bool, remarks []Remark) {
	p := l.place
	if len(p.Modules) == 0 {
		return false, nil
	}
	answer, err := l.inner().run(sameModules(p), "", false)
	texts := strings.Split(string(answer), separator)
	if err == nil && len(texts) != len(p.Modules)+1 {
		err = errOdd
	}
	if err != nil {
		return false, []Remark{{About: p.Outer, Text: "what was committed in submodules did not cross: " + err.Error()}}
	}
	if m.Modules == nil {
		m.Modules = map[string]carried{}
	}
	for n, mod := range p.Modules {
		had := m.Modules[mod.Git]
		if texts[n] == had.Seen {
			continue
		}
		named := maps.Clone(had.Named)
		if named == nil {
			named = map[string]string{}
		}
		d, err := l.carryOne(mod, texts[n], named)
		waits := err != nil || slices.ContainsFunc(d.remarks, func(r Remark) bool { return !r.Once })
		if err != nil {
			d.wait(mod.Path, "what was committed in this submodule did not cross: "+err.Error()+
				"; it is kept with the checkout")
		} else if had.Named = named; !waits {
			had.Seen = texts[n]
		}
		m.Modules[mod.Git] = had
		changes = changes || len(d.out.Refs) > 0
		remarks = append(remarks, d.remarks...)
	}
	return changes, remarks
}

// sameModules is [modulesScript] for an inner folder that is the one that was made.
func sameModules(p Place) string { return sameScript(p) + modulesScript(p.Modules) }

// carryOne is [live.carry] for one submodule.
func (l *live) carryOne(mod Module, text string, named map[string]string) (d decision, err error) {
	p := l.place
	users := Place{Outer: mod.Git, Folder: p.Folder, Branch: p.Branch}
	inner, outer := l.inner().at("modules/"+mod.Name), outerOf(users, l.Tools)
	tips, odd, err := p.tips(text)
	if err != nil {
		return d, err
	}
	for _, ref := range odd {
		d.wait(ref, "in the submodule "+mod.Path+": its name has signs that a prompt or a shell could obey; "+
			"give it a plain name")
	}
	if len(tips) == 0 {
		return d, nil
	}
	unlock, err := users.lock()
	if err != nil {
		return d, err
	}
	defer unlock()
	side, err := outer.read()
	if err != nil {
		return d, err
	}
	refused, have, err := bringTips(inner, outer, tips, side)
	if err != nil {
		return d, err
	}
	fresh, err := outer.unreached(tips, refused)
	if err != nil {
		return d, err
	}
	var crossed []string
	for _, t := range tips {
		switch {
		case refused[t.commit] != "":
			d.wait("refs/heads/"+t.branch,
				"in the submodule "+mod.Path+": your git does not take it: "+refused[t.commit])
		case fresh[t.commit]:
			d.module(p, mod, t, side, named)
			crossed = append(crossed, t.commit)
		}
	}
	if err := outer.apply(d.out, "claudebox: from the session"); err != nil {
		return d, err
	}
	if err := makeWhole(inner, outer, crossed, have); err != nil {
		return d, err
	}
	if l.Crossed != nil && len(d.out.Refs) > 0 {
		l.Crossed(mod.Git, d.out.Refs)
	}
	return d, nil
}

// bringTips fetches the tips that the user does not have, and says which of them their git does not take. have are the
// user's commits that the agent's repository has as well.
func bringTips(inner, outer side, tips []tip, users Side) (refused map[string]string, have []string, err error) {
	var want []string
	for _, t := range tips {
		want = append(want, t.commit)
	}
	slices.Sort(want)
	missing, err := outer.missing(slices.Compact(want))
	if err != nil || len(missing) == 0 {
		return nil, nil, err
	}
	all := slices.Compact(slices.Sorted(maps.Values(users.Refs)))
	without, err := inner.missing(all)
	if err != nil {
		return nil, nil, err
	}
	have = slices.DeleteFunc(all, func(object string) bool { return slices.Contains(without, object) })
	refused, _ = bring(inner, outer, missing, have)
	return refused, have, nil
}

// unreached returns those tips that no reference of the user's reaches, and no tip before.
func (s side) unreached(tips []tip, refused map[string]string) (map[string]bool, error) {
	var b strings.Builder
	b.WriteString(prelude + inCommon + `not=
fresh() {
  [ "$(g cat-file -t "$1")" = commit ] || return 0
  o=$(g rev-list -n 1 "$1" --not --all $not) || exit 1
  [ -z "$o" ] || { echo "$1"; not+=" $1"; }
}
`)
	for _, t := range tips {
		if refused[t.commit] == "" {
			fmt.Fprintf(&b, "fresh %s\n", t.commit)
		}
	}
	answer, err := s.run(b.String(), "", false)
	fresh := map[string]bool{}
	for _, object := range lines(string(answer)) {
		fresh[object] = true
	}
	return fresh, err
}

// module decides where a commit of a submodule goes: to the branch, if that is not there or is the session's own, as
// the session has put it; else to a name beside.
func (d *decision) module(p Place, mod Module, t tip, users Side, named map[string]string) {
	ref := "refs/heads/" + t.branch
	o := users.Refs[ref]
	isOurs := o != "" && o == named[ref] && users.Taken[ref] == ""
	isFree := o == "" && named[ref] == "" && !inTheWay(ref, users) && !shadows(ref, users)
	if !t.beside && (isOurs || isFree) {
		d.out.Refs = append(d.out.Refs, RefChange{ref, t.commit, o})
		named[ref], users.Refs[ref] = t.commit, t.commit
		return
	}
	name := d.beside(p, t.branch, t.commit, users, named)
	users.Refs["refs/heads/"+name] = t.commit
	d.tell(ref, fmt.Sprintf("in the submodule %s it is yours, and stays; %s%s", mod.Path, forkedTo, name))
}
