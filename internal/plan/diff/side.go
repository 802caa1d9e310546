package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
)

// side is one of the two plans, with its pinned paths named.
type side struct {
	plan.Plan
	// named puts the pin's name in the place of its store path, so that what
	// only follows a pin is equal on both sides.
	named *strings.Replacer
}

func newSide(p plan.Plan) side {
	var pairs []string
	name := func(path, name string) { pairs = append(pairs, path, "<"+name+">") }
	if p.Pins.Nixpkgs.Path != "" {
		name(p.Pins.Nixpkgs.Path, "nixpkgs")
	}
	for _, t := range p.Pins.Tools {
		name(t.Path, "tool "+t.Name)
	}
	for _, pkg := range p.Pins.Packages {
		for _, o := range pkg.Outputs {
			name(o.Path, pkg.Attr+"^"+o.Name)
		}
	}
	return side{p, strings.NewReplacer(pairs...)}
}

// packages compares by attribute; a change of order alone is one as well, as
// the first on PATH wins.
func packages(a, b side) []Change {
	before, after := a.packages(), b.packages()
	changes := compare(before, after)
	if !slices.Equal(common(before, after), common(after, before)) {
		changes = append(changes, Change{Kind: Changed, Name: "order on PATH", Note: "another program may come first"})
	}
	return changes
}

// common is the names in list, in order, that other has too.
func common(list, other []item) []string {
	known := index(other)
	var names []string
	for _, i := range list {
		if _, ok := known[i.name]; ok {
			names = append(names, i.name)
		}
	}
	return names
}

// packages lists each attribute once, with all its outputs.
func (s side) packages() []item {
	var list []item
	for _, p := range s.Pins.Packages {
		var names, paths []string
		for _, o := range p.Outputs {
			names, paths = append(names, o.Name), append(paths, o.Path)
		}
		text := p.Version
		if !slices.Equal(names, []string{"out"}) {
			text += "^" + strings.Join(names, ",")
		}
		if i := slices.IndexFunc(list, func(i item) bool { return i.name == p.Attr }); i >= 0 {
			list[i].show, list[i].same = list[i].show+" "+text, list[i].same+fmt.Sprint(names, paths)
			continue
		}
		list = append(list, item{name: p.Attr, same: fmt.Sprint(p.Version, names, paths), show: text, note: rebuilt})
	}
	return list
}

const rebuilt = "another build of it"

func (s side) nixpkgs() []item {
	n := s.Pins.Nixpkgs
	if n == (plan.Nixpkgs{}) {
		return nil
	}
	show := n.Rev
	if show == "" {
		show = n.Path
	}
	return []item{{
		name: "nixpkgs", same: n.Rev + " " + n.NarHash + " " + n.Path, show: show,
		note: "another source of it",
	}}
}

func (s side) tools() []item {
	var list []item
	for _, t := range s.Pins.Tools {
		show := t.Path
		if path, err := storepath.Of(t.Path); err == nil {
			show = storepath.Name(path)
		}
		list = append(list, item{name: t.Name, same: t.Path, show: show, note: rebuilt})
	}
	return list
}

// variables leaves PATH to the packages, which it is made of.
func (s side) variables() []item {
	var list []item
	for _, e := range s.Env {
		value := s.named.Replace(e.Value)
		if e.Name == "PATH" && e.From == plan.FromMade {
			continue
		}
		i := item{name: e.Name, same: fmt.Sprint(e.From, e.Secret, value), show: shownValue(e), note: "its value"}
		if e.From == plan.FromHost {
			i.rank = 1
		}
		if e.Secret {
			i.rank++
		}
		list = append(list, i)
	}
	return list
}

func shownValue(e plan.Env) string {
	text := "from the host"
	switch {
	case e.From != plan.FromHost && e.Secret:
		text = string(e.From)
	case e.From != plan.FromHost:
		text = readable(e.Value)
	}
	if e.Secret {
		text += ", secret"
	}
	return text
}

func (s side) mounts() []item {
	var list []item
	for _, m := range s.Mounts {
		source := s.named.Replace(m.Source)
		list = append(list, item{
			name: readable(m.Destination),
			same: fmt.Sprint(m.Kind, " ", source, " ", m.Mode, m.Size, m.Optional, m.Secret),
			show: shownMount(m), note: "its mode or size",
			rank: mountRank(m), of: m.Source,
		})
	}
	return list
}

// mountRank: a bind shows something of the host. The base's differ only by
// what they are pinned to.
func mountRank(m plan.Mount) int {
	if m.Why == plan.Base {
		return 0
	}
	return map[plan.MountKind]int{plan.ROBind: 1, plan.Bind: 2}[m.Kind]
}

var access = map[plan.MountKind]string{plan.Bind: "rw", plan.ROBind: "ro"}

func shownMount(m plan.Mount) string {
	text := access[m.Kind]
	if text == "" {
		text = string(m.Kind)
	}
	if m.Source != "" && m.Source != m.Destination {
		text += " ← " + readable(m.Source)
	}
	for _, word := range []struct {
		said bool
		word string
	}{{m.Optional, "optional"}, {m.Secret, "secret"}} {
		if word.said {
			text += ", " + word.word
		}
	}
	return text
}

// closure sums up the store paths that are mounted where not the whole store is.
func closure(a, b side) []Change {
	before, after := a.Pins.Closure, b.Pins.Closure
	gone := without(before, after)
	come := without(after, before)
	if len(gone)+len(come) == 0 {
		return nil
	}
	count := func(list []string) string { return strconv.Itoa(len(list)) + " paths" }
	return []Change{{
		Kind: Changed, Name: "closure", Before: count(before), After: count(after),
		Note: fmt.Sprintf("%d new, %d gone", len(come), len(gone)),
	}}
}

func without(list, other []string) []string {
	known := make(map[string]bool, len(other))
	for _, s := range other {
		known[s] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return known[s] })
}

// readable writes late values as profiles do.
func readable(text string) string { return late.Replace(text) }

var late = strings.NewReplacer("${home}", "~", "${project}", ".")
