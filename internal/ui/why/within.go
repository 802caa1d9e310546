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
	switch kind {
	case ask.Host:
		return w.host(word)
	case ask.Path:
		return w.path(word), path.IsAbs(word)
	case ask.Prog:
		const usual = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._"
		return w.program(word), strings.Trim(word, usual) == ""
	}
	return a, false
}

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
	case h.isLoopback():
	case l.Tier == profile.TierAllow && a.Inside:
		a.Says, a.Change = h.String()+" is on the list of hosts. If it is not reached, it does not answer, or its "+
			"name leads to a private address", ""
	case l.Tier == profile.TierAllow:
		a.Change = ""
		if listed := h.listed(); listed != "" {
			a.Change = w.allow(listed)
		}
	case l.Tier == profile.TierInet && isAddress && !a.Inside:
		if _, err := policy.ParseException(h.String()); err == nil {
			a.Change = w.allow(bracketed(address, h.Port))
		}
	case l.Tier == profile.TierInet && isAddress && !excepted(l, address, h.Port):
		a.Says += ", unless it is of the user's own network: then `" + w.allow(bracketed(address, h.Port)) + "` opens it"
	case l.Tier == profile.TierNone:
		a.Change = "claudebox --network inet"
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

// path answers for a path, by what is mounted there.
func (w Within) path(name string) Answer {
	name = path.Clean(name)
	l := w.Launch
	asked := Asked{Path: name, Real: name, Home: w.Home}
	shown := diag.Name(asked.shown(name))
	m := nearest(l.Mounts, name)
	switch {
	case m == nil:
	case m.Hides():
		a := no(shown+" is hidden, and empty here: its content stays outside. Ask the user for what you need of it",
			m.Why, "")
		if rel, below := pathname.Cut(m.Destination, l.Project); below {
			a.Change = fmt.Sprintf("`show: [%q]` in the profile, from the next session", profile.ExactGlob(rel))
		}
		return a
	case m.Kind == plan.Bind && l.Branch != "" && m.Destination == l.Project:
		return yes(shown+" is as branch "+l.Branch+" has it, read-write. What the user has not committed is not here",
			m.Why, "claudebox --branch "+l.Branch+" --with PATH, for a file that is not committed")
	case m.Kind == plan.Bind:
		return yes(shown+" is here, read-write, if something is there", m.Why, "")
	case m.Kind == plan.ROBind || m.Kind == plan.ROData || m.Kind == plan.File:
		return yes(shown+" is read-only here", m.Why, "")
	}
	if m == nil || m.Kind == plan.Tmpfs || m.Kind == plan.Dir || m.Kind == plan.Closure {
		return w.unmounted(m, asked, shown)
	}
	return yes(shown+" is the sandbox's own here", m.Why, "")
}

// unmounted answers for a path at which nothing of the host is mounted, by its name alone. m is what is there instead.
func (w Within) unmounted(m *launch.Mount, asked Asked, shown string) Answer {
	a := no(shown+" is not mounted: nothing of the host is there, whether the host has it or not", "", "")
	if m != nil && m.Kind == plan.Closure {
		a.Change = "`packages` in the profile, or `nix: {store: full}`"
		return a
	}
	if m != nil && m.Destination == asked.Path {
		a.Says = shown + " is a folder of the sandbox's own"
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

// rights are programs that would need rights which nothing inside has.
var rights = []string{"sudo", "su", "doas", "docker", "podman", "systemctl", "mount"}

// capitals reports whether a word is written as variables are.
func capitals(word string) bool {
	return strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && (word[0] < '0' || word[0] > '9')
}

// variable answers for a variable, by what enters. Whether the user has it outside is not told.
func (w Within) variable(name string) Answer {
	for _, v := range w.Launch.Env {
		if v.Name == name {
			return yes(name+" is a variable that enters", v.Why, "")
		}
	}
	return no(name+" is no variable that enters, and no program here", "", fmt.Sprintf(
		"`extra_env_passthrough: [%[1]s]` in the profile, or `secrets: [{env: %[1]s, hosts: [HOST]}]` for a secret", name))
}

// program answers for a program that is not on PATH inside.
func (w Within) program(word string) Answer {
	if slices.Contains(rights, word) {
		return no(word+" is of no use here: nothing in a sandbox has such rights. Ask the user "+
			"to do it outside", "", "")
	}
	if capitals(word) {
		return w.variable(word)
	}
	return no(word+" is not installed here", "packages", view.Remedy(word))
}

// Answered is the text of an answer for an agent.
func (a Answer) Answered() string {
	text := a.text(columns, "outside:")
	if !a.Inside && a.Change != "" {
		text += "Stop trying, and tell the user what to do outside.\n"
	}
	return text
}

// columns is how wide an answer to an agent is: a command stays on its line.
const columns = 400
