package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
	"claudebox/internal/profile/grant"
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
	d := Diff{
		{Name: "packages"},
		{Name: "nixpkgs"},
		{Name: "tools"},
		{Name: "variables"},
		{Name: "mounts"},
		{Name: "network"},
		{Name: "settings"},
		{Name: "profile"},
	}
	changes := grant.Sides{Before: before.Grants(), After: after.Grants()}.Changes()
	for _, c := range changes {
		if c.Key() != "closure" {
			of := slices.IndexFunc(d, func(s Subject) bool { return s.Name == subject(c.Key()) })
			d[of].Changes = append(d[of].Changes, shown(c))
		}
	}
	mounts := &d[4]
	mounts.Changes = append(mounts.Changes, closure(before, after, changes)...)
	d = slices.DeleteFunc(d, func(s Subject) bool { return len(s.Changes) == 0 })
	switch {
	case len(d) > 0:
		return d
	case before.Digest() != after.Digest():
		same := Change{Kind: Changed, Name: "order or lines", Note: "what it asks for is the same"}
		return Diff{{"profile", []Change{same}}}
	}
	return nil
}

// subject returns the name of the subject that a key belongs to.
func subject(key string) string {
	area, _, _ := strings.Cut(key, ".")
	switch area {
	case "packages", "nixpkgs", "mounts", "network", "profile":
		return area
	case "tool", grant.Variable:
		return area + "s"
	case "ports":
		return "network"
	case "source":
		return "profile"
	}
	return "settings"
}

// notes say what has changed where the values that are shown do not.
var notes = map[string]string{
	"packages": "another build of it", "tool": "another build of it", "nixpkgs": "another source of it",
	grant.Variable: "its value", "source": "its file has changed",
	"secrets": "where it is, how it is sent, or where it writes",
}

// shown is a change for people.
func shown(c grant.Change) Change {
	if c.After.Name == grant.Order {
		return Change{Kind: Changed, Name: "order on PATH", Note: "another program may come first"}
	}
	made := Change{
		Kind: Changed, Name: label(c), Before: value(c.Before), After: value(c.After), Wider: c.Verdict == grant.More,
	}
	switch {
	case c.Came():
		made.Kind = Added
	case c.Went():
		made.Kind = Removed
	case made.Before == made.After:
		made.Note = notes[c.Key()]
	}
	return made
}

// label is what a change is of: its name alone, where the subject says the rest.
func label(c grant.Change) string {
	key, name := c.Key(), readable(cmp.Or(c.Before.Name, c.After.Name))
	switch key {
	case "network":
		return "tier"
	case "profile":
		return "name"
	case "packages", "tool", grant.Variable, "mounts", "source":
		return name
	}
	return strings.TrimSpace(strings.TrimPrefix(key, "network.") + " " + name)
}

// value is what a grant is of, for people.
func value(g grant.Grant) (text string) {
	words := strings.Fields(g.Of)
	switch {
	case g.Key == "source", g.Key == "secrets":
		return ""
	case g.Key == "mounts":
		words = strings.Fields(g.Level)
		if g.Of != "" && g.Of != g.Name {
			words[0] += " ← " + readable(g.Of)
		}
		return strings.Join(words, ", ")
	case g.Key == "packages": // without the paths
		return strings.Join(slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "/") }), " ")
	case g.Key == "nixpkgs":
		return words[0]
	case g.Key == "tool":
		if path, err := storepath.Of(g.Of); err == nil {
			return storepath.Name(path)
		}
	case g.Key == grant.Variable:
		from, text, _ := strings.Cut(g.Of, " ")
		switch {
		case from == string(plan.FromHost):
			text = "from the host"
		case g.Level != "":
			text = from
		}
		if strings.Contains(g.Level, "secret") {
			text += ", secret"
		}
		return readable(text)
	}
	return readable(cmp.Or(g.Of, g.Level))
}

// closure returns one change that counts the store paths which came and went; nil if there are none.
func closure(before, after plan.Plan, changes []grant.Change) []Change {
	come, gone := 0, 0
	for _, c := range changes {
		switch {
		case c.Key() != "closure":
		case c.Came():
			come++
		default:
			gone++
		}
	}
	if come+gone == 0 {
		return nil
	}
	count := func(p plan.Plan) string { return fmt.Sprintf("%d paths", len(p.Pins.Closure)) }
	return []Change{{
		Kind: Changed, Name: "closure", Before: count(before), After: count(after),
		Note: fmt.Sprintf("%d new, %d gone", come, gone),
	}}
}

// readable replaces late values by what stands for them in a profile: "~" and ".".
func readable(text string) string { return late.Replace(text) }

var late = strings.NewReplacer("${home}", "~", "${project}", ".")
