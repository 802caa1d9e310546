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

// approval is what a user approved, as it is kept.
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

// DecodeApproval reads what was kept; nil: nothing was, or another build kept it.
func DecodeApproval(content []byte) grant.Set {
	var a approval
	if json.Unmarshal(content, &a) != nil || a.Version != approvalVersion {
		return nil
	}
	return a.Grants
}

// phrase is what stands before and after a grant's name.
type phrase struct{ before, after string }

// phrases are how grants are said to a person that are not said by their keys.
var phrases = map[string]phrase{
	"git.config":      {"git configuration ", ""},
	"mcp.import":      {"MCP server ", ""},
	"network.private": {"network host ", " (may be in your own network)"},
	"network.allow":   {"network host ", ""},
	"network.except":  {"network except ", ""},
	"network.via":     {"network via ", ""},
	"nix.store":       {"nix store ", ""},
	"packages":        {"package ", ""},
	"ports.in":        {"port ", " of this host leads inside"},
	"ports.out":       {"port ", " inside leads to this host"},
	"protect_mode":    {"protection ", ""},
	grant.Variable:    {"variable ", ""},
}

// line says a grant that is no mount.
func line(g grant.Grant) string {
	p, special := phrases[g.Key]
	if !special {
		p.before = g.Key + " "
	}
	return p.before + cmp.Or(g.Name, g.Of, g.Level) + p.after
}
