package diff

import (
	"slices"

	"claudebox/internal/plan"
)

// Diff is what changed between two plans, subject by subject. Those without a
// change are left out; equal plans have none.
type Diff []Subject

// Subject is one part of a plan.
type Subject struct {
	// "packages", "nixpkgs", "tools", "variables", "mounts", "network", "settings", "profile"
	Name    string   `json:"name"`
	Changes []Change `json:"changes"`
}

// Kind is how something changed.
type Kind string

// The kinds of changes.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Change is one thing that is new, gone or different.
type Change struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name"`             // of the package, variable, folder, host or setting
	Before string `json:"before,omitempty"` // for people; empty when there is nothing to say
	After  string `json:"after,omitempty"`
	Note   string `json:"note,omitempty"`  // what the values do not show
	Wider  bool   `json:"wider,omitempty"` // the sandbox sees, reaches or may do more
}

// Of returns what changed from before to after. It is not empty if the files of the
// two plans differ in any way.
func Of(before, after plan.Plan) Diff {
	a, b := newSide(before), newSide(after)
	subjects := []Subject{
		{"packages", packages(a, b)},
		{"nixpkgs", compare(a.nixpkgs(), b.nixpkgs())},
		{"tools", compare(a.tools(), b.tools())},
		{"variables", compare(a.variables(), b.variables())},
		{"mounts", slices.Concat(compare(a.mounts(), b.mounts()), closure(a, b))},
		{"network", network(compare(settings("network", before.Network), settings("network", after.Network)))},
		{"settings", compare(rest(before), rest(after))},
		{"profile", compare(sources(before), sources(after))},
	}
	d := slices.DeleteFunc(Diff(subjects), func(s Subject) bool { return len(s.Changes) == 0 })
	switch {
	case len(d) > 0:
		return d
	case before.Digest() != after.Digest():
		same := Change{Kind: Changed, Name: "order or lines", Note: "what it asks for is the same"}
		return Diff{{"profile", []Change{same}}}
	}
	return nil
}

// item is one thing of a plan, as it is compared and shown.
type item struct {
	name string
	// same is what is compared: two items with one name are equal if it is equal.
	same string
	// show is the value as it is shown to people.
	show string
	// note describes the change if show is the same before and after.
	note string
	// rank is how much the item lets in or out: a higher rank is wider. It is
	// negative for a protection: without it the sandbox is wider.
	rank int
	// of is what the item shows of the host: a change of it counts as wider.
	of string
}

// compare returns the differences between two lists, matched by name, in the order of
// after; removed items come last.
func compare(before, after []item) []Change {
	known := index(before)
	var changes []Change
	for _, b := range after {
		a, found := known[b.name]
		switch {
		case !found:
			changes = append(changes, Change{Added, b.name, "", b.show, "", b.rank > 0})
		case a.same != b.same:
			c := Change{Changed, a.name, a.show, b.show, "", b.rank > a.rank || b.rank > 0 && a.of != b.of}
			if a.show == b.show {
				c.Note = b.note
			}
			changes = append(changes, c)
		}
		delete(known, b.name)
	}
	for _, a := range before {
		if _, left := known[a.name]; left {
			changes = append(changes, Change{Removed, a.name, a.show, "", "", a.rank < 0})
			delete(known, a.name)
		}
	}
	return changes
}

func index(list []item) map[string]item {
	byName := make(map[string]item, len(list))
	for _, i := range list {
		byName[i.name] = i
	}
	return byName
}
