package audit

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
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
	return mountWord + access(m) + " " + m.Source + between + m.Destination
}

// The words of a mount's line.
const mountWord, between = "mount ", " at "

// mount is what a line says of a mount; the zero value is none.
type mount struct{ access, source, destination string }

// readMount reads what [MountLine] wrote. It returns false for a line that it cannot read with certainty.
func readMount(line string) (m mount, ok bool) {
	m.access, line, _ = strings.Cut(strings.TrimPrefix(line, mountWord), " ")
	if half := (len(line) - len(between)) / 2; half > 0 && line == line[:half]+between+line[:half] {
		m.source, m.destination = line[:half], line[:half]
		return m, true
	}
	m.source, m.destination, ok = strings.Cut(line, between)
	return m, ok && !strings.Contains(m.destination, between)
}

// ranks are the rights that a mount gives to what it shows.
var ranks = map[string]int{"ro": 1, "rw": 2}

// shows returns the path of the host that lies at a place inside, by mounts, and the right to it. The mount that lies
// there or nearest above decides.
func shows(list []mount, at string) (source string, rank int) {
	nearest := mount{}
	for _, m := range list {
		if rest, below := pathname.Cut(at, m.destination); below && len(m.destination) >= len(nearest.destination) {
			nearest, source = m, path.Join(m.source, rest)
		}
	}
	return source, ranks[nearest.access]
}

// lessens are the beginnings of lines without which a sandbox has less.
var lessens = []string{"MCP server ", "network host ", "nix daemon", "package ", "port ", "variable "}

// Grants reports whether lines of a launch let in what those that were approved do not. A mount that only takes away is
// none, nor one of what may be reached in the same way already. What lay over a path that is gone hides nothing.
func Grants(l launch.Launch, approved, lines []string, gone func(path string) bool) bool {
	var base []mount
	for _, m := range l.Mounts {
		if m.Why == plan.Base && accesses[m.Kind] != "" {
			base = append(base, mount{access(m), m.Source, m.Destination})
		}
	}
	mounts := func(lines []string) []mount {
		list := slices.Clone(base)
		for _, line := range lines {
			if m, ok := readMount(line); ok && strings.HasPrefix(line, mountWord) {
				list = append(list, m)
			}
		}
		return list
	}
	before, after := mounts(approved), mounts(lines)
	return slices.ContainsFunc(Difference(approved, lines), func(change string) bool {
		line := change[2:]
		if !strings.HasPrefix(line, mountWord) {
			isLess := func(beginning string) bool { return strings.HasPrefix(line, beginning) }
			return change[0] == '+' || !slices.ContainsFunc(lessens, isLess)
		}
		m, ok := readMount(line)
		had, could := shows(before, m.destination)
		has, can := shows(after, m.destination)
		return !ok || can > 0 && (can > could || has != had) && !gone(has)
	})
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
		p.item(line[:2], v.change(line)[2:], "")
	}
	return p.b.String()
}

// whole are changes for people, the weightiest first. None is broken over two lines.
func (v View) whole(changes []string) []string {
	return each(byWeight(changes), func(line string) string {
		return strings.ReplaceAll(v.change(line), " ", unbroken)
	})
}

// change is a line of a difference for people. A mount's paths are short, and one where both are the same.
func (v View) change(line string) string {
	m, ok := readMount(line[2:])
	if !ok || !strings.HasPrefix(line[2:], mountWord) {
		return diag.Visible(line)
	}
	text := line[:2] + m.access + " " + v.name(m.destination)
	if m.source != m.destination && ranks[m.access] > 0 {
		text += " ← " + v.name(m.source)
	}
	return text
}
