package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// Lines are what a user approves of a launch, one fact a line, sorted. Two
// launches with the same lines let the same things in. Values of variables are
// not among them: a new token is not a wider sandbox.
func Lines(l launch.Launch) []string {
	lines := []string{
		"agent " + strings.Join(l.Agent.Words, " "),
		"git configuration " + l.Plan.Git.Config,
		"nix store " + l.Plan.Nix.Store,
		networkLine(l),
		"profile " + l.Plan.Profile,
		"protection " + strings.Join(append([]string{l.Plan.Protect.Mode}, l.Plan.Protect.Globs...), " "),
		"state " + l.Plan.State,
	}
	add := func(words ...string) { lines = append(lines, words...) }
	if l.Tier == "allow" {
		add(each(l.Plan.Network.Hosts(), func(host string) string { return "network host " + host })...)
	}
	if l.Tier != "full" {
		for _, port := range l.Plan.Network.In {
			add(fmt.Sprintf("port %d of this host leads inside", port))
		}
		for _, port := range l.Plan.Network.Out {
			add(fmt.Sprintf("port %d inside leads to this host", port))
		}
	}
	if hasDaemon(l) {
		add("nix daemon")
	}
	add(each(l.Plan.MCP, func(server string) string { return "MCP server " + server })...)
	for _, v := range l.Env {
		if v.From != plan.FromMade {
			add("variable " + v.Name + " from " + string(v.From))
		}
	}
	add(each(l.Outside, func(o launch.Outside) string {
		return "secret " + o.Name + " is used for " + strings.Join(o.Hosts, " ")
	})...)
	add(each(beyondBase(l), MountLine)...)
	add(each(names(l.Plan.Pins.Packages), func(name string) string { return "package " + name })...)
	slices.Sort(lines)
	return slices.Compact(lines)
}

// networkLine is the tier, with its exceptions and its proxy. Hosts have lines of their
// own.
func networkLine(l launch.Launch) string {
	n := l.Plan.Network
	words := []string{"network", l.Tier}
	if len(n.Except) > 0 {
		words = append(words, "except "+strings.Join(n.Except, " "))
	}
	if n.Via != "" {
		words = append(words, "via "+n.Via)
	}
	return strings.Join(words, " ")
}

// MountLine is the line of a mount among [Lines].
func MountLine(m launch.Mount) string {
	return "mount " + accesses[m.Kind] + " " + m.Source + " at " + m.Destination
}

// Difference is what changed between two sorted lists of lines: each new one
// after "+ ", then each gone one after "- ".
func Difference(before, after []string) (list []string) {
	for _, side := range []struct {
		mark          string
		lines, others []string
	}{{"+ ", after, before}, {"- ", before, after}} {
		for _, line := range side.lines {
			if _, found := slices.BinarySearch(side.others, line); !found {
				list = append(list, side.mark+line)
			}
		}
	}
	return list
}

// weightiest are the beginnings of lines that a person is to see first.
var weightiest = []string{"network", "port", "secret", "variable", "mount rw", "mount"}

// byWeight sorts changes into the order in which a person is to see them: what is new
// before what is gone.
func byWeight(changes []string) []string {
	weight := func(change string) int {
		i := slices.IndexFunc(weightiest, func(word string) bool { return strings.HasPrefix(change[2:], word) })
		if i < 0 {
			i = len(weightiest)
		}
		return i
	}
	return slices.SortedStableFunc(slices.Values(changes), func(a, b string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(weight(a), weight(b)))
	})
}

// Changes renders a difference from the last launch that the user approved;
// nothing, when there is none.
func (v View) Changes(diff []string) string {
	if len(diff) == 0 {
		return ""
	}
	p := page{View: v}
	p.title("since the last launch that you approved here")
	for _, line := range diff {
		p.item(line[:2], line[2:], "")
	}
	return p.b.String()
}
