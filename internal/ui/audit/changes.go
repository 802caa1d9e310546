package audit

import (
	"cmp"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/profile/grant"
)

// Changes renders a difference from the last launch that the user approved;
// nothing, when there is none.
func (v View) Changes(changes []grant.Change) string {
	if len(changes) == 0 {
		return ""
	}
	p := page{View: v}
	p.title("since the last launch that you approved here")
	for _, text := range v.told(changes) {
		p.item(text[:2], text[2:], "")
	}
	return p.b.String()
}

// weightiest are the keys of what a person is to see first.
var weightiest = []string{
	"network", "network.allow", "network.private", "network.except", "network.via", "ports.in", "ports.out", outside,
	grant.Variable, grant.Mount,
}

// told says each change to a person, in a line: first what is new, after "+ ", then what is gone, after "- ", each with
// the weightiest first. A mount that shows what is there anyway, as it keeps a folder in its place, is none.
func (v View) told(changes []grant.Change) (lines []string) {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c grant.Change) bool {
		return c.Came() && c.Verdict == grant.Less && c.After.Level == "rw" && c.After.Of == c.After.Name
	})
	for _, side := range []struct {
		mark string
		of   func(grant.Change) grant.Grant
	}{
		{"+ ", func(c grant.Change) grant.Grant { return c.After }},
		{"- ", func(c grant.Change) grant.Grant { return c.Before }},
	} {
		list := slices.DeleteFunc(each(changes, side.of), func(g grant.Grant) bool { return g.Key == "" })
		slices.SortStableFunc(list, func(a, b grant.Grant) int { return cmp.Compare(weight(a), weight(b)) })
		for _, g := range list {
			lines = append(lines, side.mark+v.grant(g))
		}
	}
	return lines
}

func weight(g grant.Grant) int {
	i := slices.Index(weightiest, g.Key)
	if i < 0 || g.Key == grant.Mount && g.Level != "rw" {
		i += len(weightiest) + 1
	}
	return i
}

// grant is a grant for people. A mount's paths are short, and one where both are the same.
func (v View) grant(g grant.Grant) string {
	if g.Key == byDigest && len(g.Of) > shownDigest {
		g.Of = g.Of[:shownDigest] + "…"
	}
	if g.Key != grant.Mount {
		return diag.Visible(line(g))
	}
	text := cmp.Or(g.Level, hidden) + " " + v.name(g.Name)
	if g.Level != "" && g.Of != g.Name {
		text += " ← " + v.name(g.Of)
	}
	return text
}

// unbrokenLines are lines none of which is broken over two.
func unbrokenLines(lines []string) []string {
	return each(lines, func(line string) string { return strings.ReplaceAll(line, " ", unbroken) })
}
