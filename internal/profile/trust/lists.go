package trust

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/linux/pathname"
	"claudebox/internal/profile"
	"claudebox/internal/secret/leak"
)

// entry is one entry of a list: what it grants, in full, and where it was
// said. Two entries that say the same grant the same.
type entry struct {
	says   string
	origin profile.Origin
}

func plain(text string) entry         { return entry{says: text} }
func port(number int) entry           { return entry{says: strconv.Itoa(number)} }
func hostEnv(v profile.HostEnv) entry { return entry{v.Name, v.Origin} }
func secret(s profile.Secret) entry {
	said := s.Variable + " for " + strings.Join(s.Hosts, " ") + strings.Join(append([]string{" as"}, s.As...), " ") +
		" " + s.Header + " " + s.File
	if s.Inside {
		said += " inside"
	}
	return entry{strings.TrimSpace(said), s.Origin}
}
func pattern(p profile.Pattern) entry    { return entry{p.Glob, p.Origin} }
func gitHost(g profile.GitHost) entry    { return entry{g.Host + " with " + g.Variable, g.Origin} }
func packageRef(p profile.Package) entry { return entry{withOutputs(p), p.Origin} }

func withOutputs(p profile.Package) string {
	if len(p.Outputs) == 0 {
		return p.Attr
	}
	return p.Attr + "^" + strings.Join(p.Outputs, ",")
}

// fewer keeps what of a granting list is in both, and notes what is new.
func fewer[T any](n *narrowing, base, asked []T, read func(T) entry) []T {
	known := index(base, read)
	var kept []T
	for _, t := range asked {
		e := read(t)
		if !known[e.says] {
			n.widens(e.says, e.origin)
			continue
		}
		kept = append(kept, t)
	}
	return kept
}

func index[T any](list []T, read func(T) entry) map[string]bool {
	known := make(map[string]bool, len(list))
	for _, t := range list {
		known[read(t).says] = true
	}
	return known
}

// more joins two lists of restrictions, and notes what asked leaves out.
func more(n *narrowing, base, asked []profile.Pattern) []profile.Pattern {
	known, had := index(asked, pattern), index(base, pattern)
	joined := slices.Clone(base)
	for _, p := range base {
		if !known[p.Glob] {
			n.widens("no longer "+p.Glob, "")
		}
	}
	for _, p := range asked {
		if !had[p.Glob] {
			joined = append(joined, p)
		}
	}
	return joined
}

// agent judges the program as a whole: what another one does is not known.
func (n *narrowing) agent() {
	if base, asked := agentText(n.base.Agent), agentText(n.asked.Agent); base != asked {
		n.replaces(asked, base)
	}
}

func agentText(a profile.Agent) string {
	words := a.Command
	if len(words) == 0 {
		words = []string{a.Name}
	}
	text := strings.Join(mapped(words, quoted), " ")
	for _, v := range a.Env {
		text += " with " + v.Name
	}
	for _, folder := range slices.Sorted(maps.Keys(a.Home)) {
		text += ", " + a.Home[folder] + " " + folder
	}
	return text
}

// quoted keeps words apart that hold blanks.
func quoted(word string) string {
	if word == "" || strings.ContainsAny(word, " \t\n\"") {
		return strconv.Quote(word)
	}
	return word
}

// packages may be left out. Their order is that of PATH: another one runs
// other programs.
func (n *narrowing) packages() {
	kept := fewer(n, n.base.Packages, n.asked.Packages, packageRef)
	rest := mapped(n.base.Packages, withOutputs)
	for _, p := range kept {
		at := slices.Index(rest, withOutputs(p))
		if at < 0 {
			n.widens("another order on PATH", "")
			return
		}
		rest = rest[at+1:]
	}
	n.made.Packages = kept
}

// env judges constants: what they do to programs is not known, nor what shows
// when one is left out.
func (n *narrowing) env() {
	was, is := map[string]string{}, map[string]bool{}
	for _, c := range n.base.Env {
		was[c.Name] = c.Value
	}
	for _, c := range n.asked.Env {
		is[c.Name] = true
		if value, known := was[c.Name]; !known || value != c.Value {
			n.widens(constantText(c), c.Origin)
		}
	}
	for _, c := range n.base.Env {
		if !is[c.Name] {
			n.widens("no longer "+c.Name, "")
		}
	}
}

func constantText(c profile.Constant) string {
	if leak.Variable(c.Name, c.Value) != "" {
		return c.Name + ", which looks like a secret"
	}
	return c.Name + "=" + c.Value
}

// mounts may be left out or become read-only. One that lies in the project or
// in another mount may cover something, and stays.
func (n *narrowing) mounts() {
	byPlace := map[string]profile.Mount{}
	for _, m := range n.asked.Mounts {
		byPlace[m.Sandbox] = m
	}
	var made []profile.Mount
	for _, was := range n.base.Mounts {
		is, kept := byPlace[was.Sandbox]
		delete(byPlace, was.Sandbox)
		switch {
		case !kept && !n.covers(was):
		case kept && isLess(was, is):
			made = append(made, is)
		case kept:
			n.widens(mountText(is)+" instead of "+mountText(was), is.Origin)
			made = append(made, was)
		default:
			n.widens("no longer "+mountText(was)+", which may cover something", "")
			made = append(made, was)
		}
	}
	for _, m := range n.asked.Mounts {
		if _, isNew := byPlace[m.Sandbox]; isNew {
			n.widens(mountText(m), m.Origin)
		}
	}
	n.made.Mounts = made
}

// covers reports whether something may show when a mount is left out.
func (n *narrowing) covers(m profile.Mount) bool {
	at := n.at.absolute(m.Sandbox)
	within := func(place string) bool { return pathname.Below(at, place) }
	return within(n.at.Project) || slices.ContainsFunc(n.at.Mounted, within) ||
		slices.ContainsFunc(n.base.Mounts, func(other profile.Mount) bool {
			return other.Sandbox != m.Sandbox && pathname.Below(at, n.at.absolute(other.Sandbox))
		})
}

// isLess reports whether a mount shows the same as another and grants no more.
// Whether it is optional grants nothing.
func isLess(was, is profile.Mount) bool {
	return is.Host == was.Host && (was.Writable || !is.Writable) && (was.Secret || !is.Secret)
}

func mountText(m profile.Mount) string {
	text := m.Host
	if m.Sandbox != m.Host {
		text += " at " + m.Sandbox
	}
	if m.Writable {
		text += ", read-write"
	} else {
		text += ", read-only"
	}
	if m.Secret {
		text += ", secret"
	}
	if there, relation := profile.Exposes(m.Host); relation != profile.Apart {
		text += " (" + there.What + ")"
	}
	return text
}

func mapped[A, B any](list []A, f func(A) B) []B {
	made := make([]B, len(list))
	for i, a := range list {
		made[i] = f(a)
	}
	return made
}
