package audit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/profile/grant"
	"claudebox/internal/sandbox/launch"
)

// Keys of grants that only a launch has, besides those of package grant.
const (
	outside  = "secret" // a secret that is used from outside, and for which hosts
	byDigest = "plan"   // a plan that an agent could have written
)

// Grants returns what a launch lets in, sorted: what a user approves. digest is that of a plan that an agent could have
// written; empty: it is none. Values of variables are not among it: a new token is no wider sandbox.
func Grants(l launch.Launch, digest string) grant.Set {
	p := l.Plan
	if p.Network = p.Network.Under(l.Tier); l.Tier == "full" {
		p.Network.In, p.Network.Out = nil, nil // both networks are one
	}
	set := slices.DeleteFunc(p.Settings(), func(g grant.Grant) bool {
		return g.Key == "secrets" || strings.HasPrefix(g.Key, "agent.") // there are others for these
	})
	set = append(set, grant.One("agent", strings.Join(l.Agent.Words, " ")), grant.One("profile", p.Profile))
	add := func(key, name string) { set = append(set, grant.Grant{Key: key, Name: name}) }
	for _, v := range l.Env {
		if v.From != plan.FromMade {
			add(grant.Variable, v.Name+" from "+string(v.From))
		}
	}
	for _, o := range l.Outside {
		add(outside, o.Name+" is used for "+strings.Join(o.Hosts, " "))
	}
	for _, name := range names(p.Pins.Packages) {
		add("packages", name)
	}
	if digest != "" {
		set = append(set, grant.One(byDigest, digest))
	}
	for _, m := range beyondBase(l) {
		set = append(set, MountGrant(m))
	}
	return set.Sorted()
}

// MountGrant is the grant of a mount beyond the base.
func MountGrant(m launch.Mount) grant.Grant {
	g := grant.Grant{Key: grant.Mount, Name: m.Destination, Level: access(m), Of: m.Source}
	if g.Level == hidden {
		g.Level = ""
	}
	return g
}

// Sides are what was approved and what a launch lets in. Both have the mounts of the base, and what comes with a
// repository in the project: a git folder of the agent's own, and objects that the project has anyway.
func Sides(l launch.Launch, approved, now grant.Set) grant.Sides {
	sides := grant.Sides{Before: approved, After: now}
	for _, m := range l.Mounts {
		g := MountGrant(m)
		switch {
		case m.Why == plan.Base && accesses[m.Kind] != "":
			sides.Shared = append(sides.Shared, g)
		case isAgents(l, m) || m.Why == launch.WhyObjects && pathname.Below(m.Source, l.Project):
			if came := !slices.ContainsFunc(approved, func(of grant.Grant) bool { return of.Name == g.Name }); came {
				sides.Shared = append(sides.Shared, g)
				sides.After = slices.DeleteFunc(slices.Clone(sides.After), func(of grant.Grant) bool { return of == g })
			}
		}
	}
	return sides
}

// approval is what a user approved, as it is kept. Version 1 was a list of lines.
type approval struct {
	Version int       `json:"version"`
	Grants  grant.Set `json:"grants"`
}

const approvalVersion = 2

// EncodeApproval returns what to keep of an approval.
func EncodeApproval(set grant.Set) []byte {
	content, err := json.Marshal(approval{approvalVersion, set})
	if err != nil {
		panic("bug: " + err.Error())
	}
	return content
}

// DecodeApproval reads what was kept; nil: nothing was, or a later build kept it. Of what version 1 did not say, now
// counts as approved.
func DecodeApproval(content []byte, now grant.Set) grant.Set {
	var a approval
	if json.Unmarshal(content, &a) == nil && a.Version == approvalVersion {
		return a.Grants
	}
	var lines []string
	if json.Unmarshal(content, &lines) != nil || len(lines) == 0 {
		return nil
	}
	var set grant.Set
	for _, line := range lines {
		set = append(set, ofLine(line)...)
	}
	for _, g := range now {
		if _, known := phraseOf(g.Key); !known && g.Key != grant.Mount && g.Key != "protect" {
			set = append(set, g)
		}
	}
	return set.Sorted()
}

// phrase is how grants of a key are said to a person.
type phrase struct {
	key, before, after string
	named              bool // there can be several
}

// phrases are those of grants that are not said by their keys. Version 1 of approvals has no others.
var phrases = []phrase{
	{"agent", "agent ", "", false},
	{"git.config", "git configuration ", "", false},
	{"mcp.import", "MCP server ", "", true},
	{"network.private", "network host ", " (may be in your own network)", true},
	{"network.allow", "network host ", "", true},
	{"network.except", "network except ", "", true},
	{"network.via", "network via ", "", false},
	{"network", "network ", "", false},
	{"nix.store", "nix store ", "", false},
	{"packages", "package ", "", true},
	{byDigest, "plan ", "", false},
	{"ports.in", "port ", " of this host leads inside", true},
	{"ports.out", "port ", " inside leads to this host", true},
	{"profile", "profile ", "", false},
	{"protect_mode", "protection ", "", false},
	{outside, "secret ", "", true},
	{"state", "state ", "", false},
	{grant.Variable, "variable ", "", true},
}

func phraseOf(key string) (phrase, bool) {
	i := slices.IndexFunc(phrases, func(p phrase) bool { return p.key == key })
	if i < 0 {
		return phrase{key: key, before: key + " "}, false
	}
	return phrases[i], true
}

// line says a grant that is no mount.
func line(g grant.Grant) string {
	p, _ := phraseOf(g.Key)
	return p.before + cmp.Or(g.Name, g.Of, g.Level) + p.after
}

// ofLine reads a line of version 1. One that cannot be read with certainty is a grant of which nothing is known.
func ofLine(line string) grant.Set {
	if rest, is := strings.CutPrefix(line, "mount "); is {
		return ofMountLine(rest)
	}
	for _, p := range phrases {
		value, begins := strings.CutPrefix(line, p.before)
		value, ends := strings.CutSuffix(value, p.after)
		words := strings.Fields(value)
		switch {
		case !begins || !ends:
		case p.key == "network.private":
			return grant.Set{{Key: p.key, Name: value}, {Key: "network.allow", Name: value}}
		case p.named:
			return grant.Set{{Key: p.key, Name: value}}
		case p.key == "network" && len(words) > 0:
			return append(ofNetworkWords(words[1:]), grant.One(p.key, words[0]))
		case p.key == "protect_mode" && len(words) > 0:
			set := grant.Set{grant.One(p.key, words[0])}
			for _, glob := range words[1:] {
				set = append(set, grant.Grant{Key: "protect", Name: glob})
			}
			return set
		default:
			return grant.Set{grant.One(p.key, value)}
		}
	}
	if line == "nix daemon" {
		return nil // its mount says the same
	}
	return grant.Set{{Key: line}}
}

// ofNetworkWords reads the rest of a network's line: [except PLACES] [via URL].
func ofNetworkWords(words []string) (set grant.Set) {
	for i, word := range words {
		switch {
		case word == "except" || word == "via":
		case i > 0 && words[i-1] == "via":
			set = append(set, grant.One("network.via", word))
		default:
			set = append(set, grant.Grant{Key: "network.except", Name: word})
		}
	}
	return set
}

// ofMountLine reads ACCESS SOURCE at DESTINATION.
func ofMountLine(line string) grant.Set {
	const between = " at "
	access, paths, _ := strings.Cut(line, " ")
	g := grant.Grant{Key: grant.Mount, Level: strings.TrimPrefix(access, hidden)}
	if half := (len(paths) - len(between)) / 2; half > 0 && paths == paths[:half]+between+paths[:half] {
		g.Name, g.Of = paths[:half], paths[:half]
		return grant.Set{g}
	}
	source, destination, ok := strings.Cut(paths, between)
	if !ok || strings.Contains(destination, between) {
		return grant.Set{{Key: "mount " + line}}
	}
	g.Name, g.Of = destination, source
	return grant.Set{g}
}
