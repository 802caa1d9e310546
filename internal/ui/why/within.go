package why

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"claudebox/internal/diag"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/policy"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/ask"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
)

// Within answers the questions of a sandbox's agent. It knows the launch alone, by whose mounts, tier and list it
// answers: nothing of the host is looked at, so an answer does not depend on what is there.
type Within struct {
	Launch  launch.Launch
	Home    string   // the user's, canonical
	Session string   // its id
	Opened  []string // what the user has let it reach since: hosts in tier allow, addresses in tier inet
}

// Answer answers a question as package ask writes it. It returns false for what is no question.
func (w Within) Answer(question string) (a Answer, ok bool) {
	kind, word, _ := strings.Cut(question, " ")
	if word == "" || len(word) > ask.Longest || !utf8.ValidString(word) || diag.Visible(word) != word {
		return a, false
	}
	const usual = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._"
	switch kind {
	case ask.Host:
		a, ok = w.host(word)
	case ask.Path, ask.Here:
		a, ok = w.path(word, kind == ask.Here), path.IsAbs(word)
	case ask.Prog:
		a, ok = w.program(word), strings.Trim(word, usual) == ""
	case ask.Set:
		a, ok = w.variable(word, true), strings.Trim(word, usual) == ""
	}
	if strings.HasPrefix(a.Rule, profileRule) {
		a.Rule = "the profile"
	}
	return a, ok
}

// profileRule begins a rule that names a profile. An agent knows that of its session, but none that it extends.
const profileRule = "profile "

// host answers for a host. It tells neither the proxy of the user's network nor what this machine is connected to.
func (w Within) host(word string) (a Answer, ok bool) {
	h, ok := ParseHost(word)
	if !ok || len(h.Name) > longestHost || strings.ContainsAny(h.Name, " `'\"\\%") { // % begins a zone, of any text
		return a, false
	}
	l := w.Launch
	n := &l.Plan.Network
	switch l.Tier {
	case profile.TierAllow:
		n.Allow = slices.Concat(n.Allow, w.Opened)
	case profile.TierInet:
		n.Except = slices.Concat(n.Except, w.Opened)
	}
	a = Reach(l, h)
	address, err := netip.ParseAddr(h.Name)
	isAddress := err == nil
	switch {
	case policy.IsLoopback(h.Name):
	case l.Tier == profile.TierAllow && a.Inside:
		a.Says = h.String() + " is on the list of hosts. If it is not reached, it does not answer, or its " +
			"name leads to a private address"
	case l.Tier == profile.TierAllow:
		a.Change = ""
		if listed := h.listed(); listed != "" {
			a.Change = w.allow(listed)
		}
	case l.Tier == profile.TierInet && isAddress && !a.Inside:
		a.Change = ""
		if _, err := policy.ParseException(h.String()); err == nil {
			a.Says += ". If it is a server on the user's own machine, " + h.carried() +
				" lets the next session reach it"
			a.Change = w.allow(bracketed(address, h.Port))
		}
	case l.Tier == profile.TierInet && isAddress && !excepted(l, address, h.Port):
		a.Says += ", unless it is of the user's own network: then `" + w.allow(bracketed(address, h.Port)) + "` opens it"
	case l.Tier == profile.TierNone:
		a.Change = "claudebox --network " + h.tier()
	}
	if a.Inside { // less is for the user to think of
		a.Change = ""
	}
	return a, true
}

// longestHost is the longest name of a host, in bytes (RFC 1035, 2.3.4), with brackets.
const longestHost = 255

// allow is the command by which the user lets the session reach a host.
func (w Within) allow(host string) string {
	return "claudebox allow-host --session=" + w.Session + " " + host
}

// listed is the host as a list can have it; empty: it cannot.
func (h Host) listed() string {
	name, err := hostpattern.Canonical(h.Name)
	if err != nil || !strings.Contains(name, ".") {
		return ""
	}
	if h.Port != 0 && h.Port != 80 && h.Port != webPort {
		name = fmt.Sprintf("%s:%d", name, h.Port)
	}
	if message, _ := profile.HostFault(profile.TierAllow, name); message != "" {
		return ""
	}
	return name
}

// bracketed is an address with its port, as an exception of tier inet is written.
func bracketed(a netip.Addr, port int) string {
	if port == 0 {
		return a.String()
	}
	return netip.AddrPortFrom(a, uint16(port)).String()
}

// path answers for a path, by what is mounted there. here: who asks says that something is at it.
func (w Within) path(name string, here bool) Answer {
	name = path.Clean(name)
	l := w.Launch
	asked := Asked{Path: name, Real: name, Home: w.Home}
	shown := diag.Name(asked.shown(name))
	m := nearest(l.Mounts, name)
	switch {
	case m == nil || m.Kind == plan.Tmpfs || m.Kind == plan.Dir || m.Kind == plan.Closure:
		if here {
			return w.made(m, name, shown)
		}
		return w.unmounted(m, asked, shown)
	case m.Hides():
		a := no(shown+" is hidden, and empty here: its content stays outside. Ask the user for what you need of it",
			m.Why, "")
		if rel, below := pathname.Cut(m.Destination, l.Project); below {
			a.Change = fmt.Sprintf("`show: [%q]` in the profile, from the next session", profile.ExactGlob(rel))
		}
		return a
	case !here && (m.Kind == plan.Proc || m.Kind == plan.Dev):
		return no("the sandbox has processes and devices of its own, and "+shown+" is none of them", m.Why, "")
	case !here:
		return w.absent(*m, shown)
	case m.Kind == plan.Bind:
		return yes(shown+" is here, read-write", m.Why, "")
	case m.Kind == plan.ROBind || m.Kind == plan.ROData || m.Kind == plan.File:
		return yes(shown+" is read-only here", m.Why, "")
	}
	return yes(shown+" is the sandbox's own here", m.Why, "")
}

// absent answers for a path in a mount at which nothing is.
func (w Within) absent(m launch.Mount, shown string) Answer {
	if branch := w.Launch.Branch; branch != "" && m.Kind == plan.Bind && m.Destination == w.Launch.Project {
		return no(shown+" is not there: what the user has not committed is not on branch "+branch, m.Why,
			"claudebox --branch "+branch+" --with PATH, for a file that is not committed")
	}
	how := "read-only"
	if m.Kind == plan.Bind {
		how = "read-write"
	}
	says := "nothing is at " + shown + ", which would be " + how
	if m.Source == m.Destination {
		says += ", and nothing is hidden there"
	}
	return no(says, m.Why, "")
}

// made answers for a path at which something is, and nothing of the host is mounted. m is what it lies in.
func (w Within) made(m *launch.Mount, name, shown string) Answer {
	switch {
	case m != nil && m.Kind == plan.Closure:
		return yes(shown+" is read-only here", m.Why, "")
	case m != nil && m.Destination == name:
		return yes(shown+" is a folder of the sandbox's own: of the user's, it has what is mounted in it", m.Why, "")
	}
	return yes(shown+" was made inside, and is gone when the session ends", "", "")
}

// unmounted answers for a path at which nothing is mounted, by its name alone. m is what it lies in.
func (w Within) unmounted(m *launch.Mount, asked Asked, shown string) Answer {
	a := no(shown+" is not mounted: nothing of the host is there, whether the host has it or not", "", "")
	switch {
	case m != nil && m.Kind == plan.Closure:
		a.Change = "`packages` in the profile, or `nix: {store: full}`"
		return a
	case m != nil && m.Kind == plan.Tmpfs && m.Why == plan.Base && m.Destination != "/" && m.Destination != w.Home:
		a.Says = shown + " is not there: " + m.Destination + " is a folder of the sandbox's own. Ask the user for " +
			"what you need"
		return a
	}
	secret, relation := profile.Exposes(profile.Tilde(asked.Home, asked.Real))
	switch {
	case relation == profile.Within:
		a.Says = shown + " is not mounted: " + secret.Path + " is where secrets lie. Ask the user for what you need"
	case relation == profile.Apart && mayMount(asked):
		if word := diag.Word(asked.Path); word != "" {
			a.Change = "claudebox --mount-ro " + word + ", in a new session"
		}
	}
	return a
}

// mayMount reports whether a path could be mounted at its own place. In a flag a colon begins another place.
func mayMount(asked Asked) bool {
	source, _ := profile.SourceFault(asked.Path)
	destination, _ := profile.DestinationFault(asked.shown(asked.Path))
	return source+destination == "" && !strings.Contains(asked.Path, ":")
}

// IsVariable reports whether a word is written as variables are, in capitals: another one is a program.
func IsVariable(word string) bool { return diag.IsVariable(word) && strings.ToUpper(word) == word }

// variable answers for a variable, by what enters. Whether the user has it outside, or with which value, is not told.
// set: who asks says that it is set.
func (w Within) variable(name string, set bool) Answer {
	for _, v := range w.Launch.Env {
		if v.Name != name {
			continue
		}
		a := yes(name+" is a variable that enters", v.Why, "")
		if v.From == plan.FromMade && !strings.HasPrefix(v.Why, "a placeholder") { // the rest names what it was
			a.Rule = plan.Base
		}
		return a
	}
	if set {
		return yes(name+" was set inside, by the dev shell or another program", "", "")
	}
	return no(name+" is no variable that enters, and no program here", "", fmt.Sprintf(
		"set it, with `extra_env_passthrough: [%[1]s]` in the profile, or `secrets: [{env: %[1]s, hosts: [HOST]}]` for a secret", name))
}

// program answers for a program that is not on PATH inside.
func (w Within) program(word string) Answer {
	if a, known := missing(word); known {
		return a
	}
	if IsVariable(word) {
		return w.variable(word, false)
	}
	return no(word+" is not installed inside", "packages", view.Remedy(word))
}

// Answered is the text of an answer for an agent.
func (a Answer) Answered() string {
	switch {
	case a.Open:
		return a.text(columns, "instead:")
	case a.Inside || a.Change == "":
		return a.text(columns, "outside:")
	}
	return a.text(columns, "outside:") + "Stop trying, and tell the user what to do outside.\n"
}

// columns is how wide an answer to an agent is: a command stays on its line.
const columns = 400
