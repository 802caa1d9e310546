package trust

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag/layout"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/profile"
)

// Widening is one thing that a project asks for beyond the user's profile.
type Widening struct {
	What   string         // in full: "network: full instead of inet"
	Origin profile.Origin // where it was said; empty where that is not known
}

// mostShown is how much of a widening a person is shown in one line, in
// characters.
const mostShown = 120

// Short is What, cut in the middle when it is long.
func (w Widening) Short() string { return layout.Shorten(w.What, mostShown) }

// Place is where paths that a profile leaves open lead.
type Place struct {
	Home    string // of the user
	Project string // its root
	// Mounted is where the flags of this launch mount something, absolute.
	Mounted []string
}

// Narrow judges asked, which is base with a project's profile laid over it.
// It gives base with all that asked takes away from it, and what asked would
// add. What is neither certainly the same nor certainly less counts as added.
func Narrow(base, asked profile.Profile, at Place) (profile.Profile, []Widening) {
	n := narrowing{base: base, asked: asked, made: base, at: at}
	for _, s := range settings {
		n.label = s.label
		s.judge(&n)
	}
	n.made.Sources = asked.Sources
	return n.made, n.widenings
}

// narrowing is the work of Narrow.
type narrowing struct {
	base, asked profile.Profile
	made        profile.Profile // base, narrowed so far
	at          Place
	label       string // of the setting that is judged
	widenings   []Widening
}

func (n *narrowing) widens(what string, origin profile.Origin) {
	n.widenings = append(n.widenings, Widening{n.label + ": " + what, origin})
}

func (n *narrowing) replaces(asked, was string) { n.widens(asked+" instead of "+was, "") }

// setting is how one setting is judged.
type setting struct {
	field string // of a profile, in Go
	label string // in YAML
	judge func(*narrowing)
}

type prof = profile.Profile

// settings are all of a profile's, but for those that say what it is called and
// made of.
var settings = []setting{
	{"Agent", "agent", (*narrowing).agent},
	{"Packages", "packages", (*narrowing).packages},
	{"Nixpkgs", "nixpkgs", word(func(p *prof) *string { return &p.Nixpkgs })},
	{"Network", "network", (*narrowing).network},
	{"Network", "network.allow, private", (*narrowing).private},
	{"Network", "network.via", (*narrowing).via},
	{"Network", "network.except", (*narrowing).except},
	{"Env", "env", (*narrowing).env},
	{"PassThrough", "extra_env_passthrough", list(func(p *prof) *[]profile.HostEnv { return &p.PassThrough }, hostEnv)},
	{"Secrets", "secrets", list(func(p *prof) *[]profile.Secret { return &p.Secrets }, secret)},
	{"Mounts", "mounts", (*narrowing).mounts},
	{"State", "state", (*narrowing).state},
	{"Nix", "nix.daemon", word(func(p *prof) *profile.Daemon { return &p.Nix.Daemon })},
	{"Nix", "nix.store", word(func(p *prof) *profile.Store { return &p.Nix.Store })},
	{"Git", "git.hosts", list(func(p *prof) *[]profile.GitHost { return &p.Git.Hosts }, gitHost)},
	{"Git", "git.config", word(func(p *prof) *profile.GitConfig { return &p.Git.Config })},
	{"Git", "git.sign", word(func(p *prof) *profile.GitSign { return &p.Git.Sign })},
	{"Git", "git.ssh_to_https", (*narrowing).sshToHTTPS},
	{"SSH", "ssh.hosts", list(func(p *prof) *[]string { return &p.SSH.Hosts }, plain)},
	{"Hide", "hide", restrictions(func(p *prof) *[]profile.Pattern { return &p.Hide })},
	{"Show", "show", list(func(p *prof) *[]profile.Pattern { return &p.Show }, pattern)},
	{"Protect", "protect", restrictions(func(p *prof) *[]profile.Pattern { return &p.Protect })},
	{"ProtectMode", "protect_mode", word(func(p *prof) *profile.ProtectMode { return &p.ProtectMode })},
	{"Cache", "cache", word(func(p *prof) *profile.Cache { return &p.Cache })},
	{"Ports", "ports.in", ports(func(p *prof) *[]int { return &p.Ports.In })},
	{"Ports", "ports.out", ports(func(p *prof) *[]int { return &p.Ports.Out })},
	{"Limits", "limits.memory", limit(func(p *prof) *int64 { return &p.Limits.Memory })},
	{"Limits", "limits.tasks", limit(func(p *prof) *int { return &p.Limits.Tasks })},
	{"Limits", "limits.cpu", limit(func(p *prof) *int { return &p.Limits.CPU })},
	{"MCP", "mcp.import", list(func(p *prof) *[]string { return &p.MCP.Import }, plain)},
	{"Compat", "compat", word(func(p *prof) *profile.Compat { return &p.Compat })},
	{"Toolbox", "toolbox", word(func(p *prof) *profile.Toolbox { return &p.Toolbox })},
	{"Project", "project", word(func(p *prof) *profile.ProjectRoot { return &p.Project })},
	{"Worktrees", "worktrees", list(func(p *prof) *[]profile.Pattern { return &p.Worktrees }, pattern)},
	{"Confirm", "confirm", word(func(p *prof) *profile.Confirm { return &p.Confirm })},
}

// word takes a word that grants less, and notes any other.
func word[W ~string](in func(*prof) *W) func(*narrowing) {
	return func(n *narrowing) {
		order := profile.ByGrant[n.label]
		was, asked := *in(&n.base), *in(&n.asked)
		switch less := slices.Index(order, string(asked)); {
		case asked == was:
		case less >= 0 && less < slices.Index(order, string(was)):
			*in(&n.made) = asked
		default:
			n.replaces(string(asked), string(was))
		}
	}
}

// list takes fewer entries, and notes what is new.
func list[T any](in func(*prof) *[]T, read func(T) entry) func(*narrowing) {
	return func(n *narrowing) { *in(&n.made) = fewer(n, *in(&n.base), *in(&n.asked), read) }
}

// restrictions takes more entries, and notes what is left out.
func restrictions(in func(*prof) *[]profile.Pattern) func(*narrowing) {
	return func(n *narrowing) { *in(&n.made) = more(n, *in(&n.base), *in(&n.asked)) }
}

// limit may become smaller, or be set where there was none.
func limit[N int | int64](in func(*prof) *N) func(*narrowing) {
	return func(n *narrowing) {
		was, asked := *in(&n.base), *in(&n.asked)
		switch {
		case asked == was:
		case asked != 0 && (was == 0 || asked < was):
			*in(&n.made) = asked
		default:
			n.replaces(fmt.Sprint(asked), fmt.Sprint(was))
		}
	}
}

// ports of the host are all within reach in tier full, and those inside from
// the host: any list is less.
func ports(in func(*prof) *[]int) func(*narrowing) {
	return func(n *narrowing) {
		if n.base.Network.Tier == profile.TierFull {
			*in(&n.made) = *in(&n.asked)
			return
		}
		*in(&n.made) = fewer(n, *in(&n.base), *in(&n.asked), port)
	}
}

// state: what one home keeps, the next does not see. A home of its own shows
// nothing of other projects; the shared one does, whatever it replaces.
func (n *narrowing) state() {
	if n.asked.State == profile.StateShared && n.base.State != profile.StateShared {
		n.replaces(string(n.asked.State), string(n.base.State))
		return
	}
	word(func(p *prof) *profile.State { return &p.State })(n)
}

// network judges the tier, and the hosts of tier allow: it reaches names that lead
// to the internet only, whatever it lists (package network/policy), so it is a part
// of inet.
func (n *narrowing) network() {
	base, asked, made := n.base.Network, n.asked.Network, &n.made.Network
	if base.Tier == profile.TierAllow && asked.Tier == profile.TierAllow {
		made.Allow = fewer(n, hostpattern.Expand(base.Allow), hostpattern.Expand(asked.Allow), plain)
		if len(made.Allow) == 0 && len(base.Allow) > 0 {
			made.Tier = profile.TierNone
		}
		return
	}
	word(func(p *prof) *profile.Tier { return &p.Network.Tier })(n)
	if made.Tier == asked.Tier {
		made.Allow = asked.Allow
	}
}

// private judges the hosts of tier allow, which base may not have: in tier inet none
// of them is private.
func (n *narrowing) private() {
	n.made.Network.Private = n.reached(profile.TierAllow, n.base.Network.Private, n.asked.Network.Private)
}

// reached judges what one tier alone reaches by a list.
func (n *narrowing) reached(tier profile.Tier, base, asked []string) []string {
	switch {
	case n.made.Network.Tier != tier:
		return nil
	case n.base.Network.Tier == profile.TierFull: // which reaches them all
		return asked
	}
	return fewer(n, base, asked, plain)
}

// via judges a proxy: it sees who is asked for what, and decides where names lead.
func (n *narrowing) via() {
	base, asked, made := n.base.Network, n.asked.Network, &n.made.Network
	if made.Tier != profile.TierAllow {
		made.Via = ""
		return
	}
	if made.Via = base.Via; asked.Via != base.Via {
		n.replaces(cmp.Or(asked.Via, "no proxy"), cmp.Or(base.Via, "no proxy"))
	}
}

func (n *narrowing) except() {
	n.made.Network.Except = n.reached(profile.TierInet, n.base.Network.Except, n.asked.Network.Except)
}

func (n *narrowing) sshToHTTPS() {
	was, asked := n.base.Git.SSHToHTTPS, n.asked.Git.SSHToHTTPS
	if n.made.Git.SSHToHTTPS = was && asked; asked && !was {
		n.replaces(strconv.FormatBool(asked), strconv.FormatBool(was))
	}
}

// absolute is where a mount's path leads.
func (p Place) absolute(name string) string {
	if rest, ok := strings.CutPrefix(name, "~"); ok && (rest == "" || rest[0] == '/') {
		return path.Join(p.Home, rest)
	}
	if rest, ok := strings.CutPrefix(name, "./"); ok {
		return path.Join(p.Project, rest)
	}
	return name
}
