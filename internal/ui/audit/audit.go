package audit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// View is how an audit is shown.
type View struct {
	layout.View
	Sizes Sizes // shown where they are known
}

// Sizes are sizes in the store, in bytes, unpacked, each with all that is referred to.
type Sizes struct {
	Paths int               // in all; 0: sizes are not known
	Total uint64            // less than the sum, as packages share
	Of    map[string]uint64 // by output
}

// Text renders what will enter: who runs where, variables, mounts beyond the
// base, network, remarks. Secret values are masked.
func (v View) Text(l launch.Launch) string {
	p := page{View: v}
	p.head(l, "claudebox: this will enter the sandbox")
	p.secretsOutside(l)
	p.variables(l.Env)
	p.mounts(l)
	p.remarks(l)
	return p.b.String()
}

// secretsOutside lists the secrets that the agent uses without having them.
func (p *page) secretsOutside(l launch.Launch) {
	var rows [][]string
	for _, o := range l.Outside {
		name := diag.Visible(o.Name)
		for _, host := range o.Hosts {
			rows = append(rows, []string{name, host, o.Why})
			name = ""
		}
	}
	p.section("secrets that stay outside, and where they are used", rows, 1, -1)
}

func (p *page) head(l launch.Launch, title string) {
	p.line(p.Paint(layout.Bold, title))
	p.field("profile", l.Plan.Profile, "")
	p.field("project", p.project(l), "")
	p.field("agent", p.agent(l), "")
	p.field("home", home(p, l), "")
	p.field("packages", packages(l.Plan), "")
	if l.Devshell != nil && l.Devshell.Shown != "" {
		p.field("dev shell", l.Devshell.Shown, "")
	}
	p.network(l)
	p.field("nix", nix(l), "")
}

// agent is the program, shortened to one line, and the caller's words for it, shortened to two.
func (v View) agent(l launch.Launch) string {
	if len(l.Agent.Words) == 0 {
		return ""
	}
	words := strings.Join(slices.Concat(l.Agent.Words[1:], l.Request), " ")
	return layout.Shorten(v.short(l.Agent.Words[0]), v.room()) + " " + layout.Shorten(diag.Visible(words), 2*v.room())
}

func home(p *page, l launch.Launch) string {
	for _, m := range l.Mounts {
		if m.Kind == plan.Bind && strings.HasSuffix(m.Destination, "/.claude") {
			return p.name(filepath.Dir(m.Source)) + ", state " + l.Plan.State
		}
	}
	return "temporary"
}

func packages(p plan.Plan) string {
	own, base := p.Packages()
	return strings.Join(append(names(own), fmt.Sprintf("%d usual tools", len(base))), ", ")
}

// names returns each package with its version.
func names(list []plan.Package) []string {
	return each(list, func(pkg plan.Package) string { return strings.TrimSpace(pkg.Attr + " " + pkg.Version) })
}

// networks says what each tier leaves open. Full is shown in red: it is the
// default, and protects the least.
var networks = map[string]string{
	"full":  "the host's, its LAN and local services included",
	"inet":  "the internet; no LAN, no service of this machine",
	"allow": "these hosts only, by their names",
	"none":  "loopback inside only",
}

func (p *page) network(l launch.Launch) {
	text := l.Tier + ": " + networks[l.Tier]
	if len(l.Plan.Network.Allow) > 0 {
		text += ": " + strings.Join(l.Plan.Network.Hosts(), ", ")
	}
	if l.Plan.Network.Via != "" {
		text += "; by the proxy " + l.Plan.Network.Via + ", which looks the names up"
	}
	if len(l.Plan.Network.Except) > 0 {
		text += "; of your own network: " + strings.Join(l.Plan.Network.Except, ", ")
	}
	colour := ""
	if ownReached(l) {
		colour = layout.Red
	}
	p.field("network", text, colour)
	if l.Tier == "full" {
		return // no port is carried: both networks are one
	}
	if in := l.Plan.Network.In; len(in) > 0 {
		p.field("", "this host reaches inside, on 127.0.0.1 and [::1]: "+portList(in), "")
	}
	if out := l.Plan.Network.Out; len(out) > 0 {
		p.field("", "the agent reaches services of this host, on 127.0.0.1: "+portList(out), layout.Red)
	}
}

func portList(ports []int) string { return strings.Join(each(ports, strconv.Itoa), ", ") }

// ownReached reports whether the user's own network can be reached.
func ownReached(l launch.Launch) bool {
	return l.Tier == "full" || len(l.Plan.Network.Except)+len(l.Plan.Network.Private) > 0
}

// nix says what the agent can do with Nix.
func nix(l launch.Launch) string {
	store := "the host's whole store is readable"
	if l.Plan.Nix.Store == "closure" {
		store = fmt.Sprintf("of the host's store %d paths are readable, what the plan refers to", len(l.Closure))
	}
	switch {
	case l.OwnStore():
		return store + "; the agent builds and fetches into a store of its own, and cannot change the host's"
	case hasDaemon(l):
		return store + "; the agent builds and fetches into it by the host's daemon, " +
			"which lets it collect garbage and see everybody's roots"
	}
	return store + "; the agent can neither build nor fetch"
}

func hasDaemon(l launch.Launch) bool {
	return slices.ContainsFunc(l.Mounts, func(m launch.Mount) bool { return m.Destination == plan.DaemonSocketDir })
}

func (p *page) variables(env []launch.Variable) {
	var made []string
	var rows [][]string
	for _, v := range env {
		if v.From == plan.FromMade {
			made = append(made, v.Name)
			continue
		}
		rows = append(rows, []string{v.Name, string(v.From), p.short(v.Masked()), secrecy(v.Secret), v.Why})
	}
	p.section("variables", rows, 2, 3)
	p.paragraph("variables made by claudebox", made, " ")
}

func secrecy(secret bool) string {
	if secret {
		return "secret"
	}
	return ""
}

var accesses = map[plan.MountKind]string{plan.Bind: "rw", plan.ROBind: "ro", plan.ROData: "ro", plan.Closure: "ro"}

// hidden is the access to what a mount covers.
const hidden = "hidden"

// access is what a mount gives. A folder that is kept in its place is hidden from nobody.
func access(m launch.Mount) string {
	if m.Hides() && m.Kind != plan.Bind {
		return hidden
	}
	return accesses[m.Kind]
}

func (p *page) mounts(l launch.Launch) {
	rows := each(beyondBase(l), func(m launch.Mount) []string {
		return []string{access(m), p.place(m), secrecy(m.Secret), rule(m)}
	})
	p.section("mounts beyond the base", rows, 1, 2)
}

// beyondBase returns the mounts of what comes from the host, without those of every sandbox's base.
func beyondBase(l launch.Launch) []launch.Mount {
	isBase := func(m launch.Mount) bool {
		return accesses[m.Kind] == "" || m.Why == plan.Base || m.Layer != "" // which is of the project
	}
	return slices.DeleteFunc(slices.Clone(l.Mounts), isBase)
}

// rule says why there is a mount, and what that still depends on.
func rule(m launch.Mount) string {
	if m.IfThere {
		return m.Why + "; if the branch has a place for it"
	}
	return m.Why
}

// place is where a mount lies, and what of the host it is when that differs. What is hidden is nothing of the host.
func (v View) place(m launch.Mount) string {
	fromHost := slices.Contains([]plan.MountKind{plan.Bind, plan.ROBind, plan.Symlink}, m.Kind)
	if fromHost && m.Source != m.Destination && access(m) != hidden {
		return v.name(m.Destination) + " ← " + v.name(m.Source)
	}
	return v.name(m.Destination)
}

func redIf(red bool) string {
	if red {
		return layout.Red
	}
	return ""
}

func (p *page) remarks(l launch.Launch) {
	if len(l.Left) > 0 {
		p.title("left out: " + diag.Kinds(l.Left))
	}
	for _, left := range l.Left {
		p.item("- ", left.Text, redIf(left.Red))
	}
	hides := slices.ContainsFunc(l.Mounts, launch.Mount.Hides)
	if len(l.Warnings)+len(l.Notes) == 0 && !hides {
		return
	}
	p.title("remarks")
	for _, w := range l.Warnings {
		p.item("- ", w, layout.Red)
	}
	for _, n := range l.Notes {
		p.item("- ", n, "")
	}
	if hides { // the question has a row of what
		p.item("- ", "`show` in a profile opens what is hidden", "")
	}
}
