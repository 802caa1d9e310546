package trust

import (
	"cmp"
	"fmt"
	"path"
	"slices"
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
	for _, f := range fields {
		n.field = f.label
		f.judge(&n)
	}
	n.made.Sources = asked.Sources
	return n.made, n.widenings
}

// narrowing is the work of Narrow.
type narrowing struct {
	base, asked profile.Profile
	made        profile.Profile // base, narrowed so far
	at          Place
	field       string // the label of the field being judged
	widenings   []Widening
}

func (n *narrowing) widens(what string, origin profile.Origin) {
	n.widenings = append(n.widenings, Widening{n.field + ": " + what, origin})
}

// field is how one field of a profile is judged.
type field struct {
	name  string // in Go
	label string // in YAML
	judge func(*narrowing)
}

// fields are all of a profile's, but for those that say what it is called and
// made of.
var fields = []field{
	{"Agent", "agent", (*narrowing).agent},
	{"Packages", "packages", (*narrowing).packages},
	{"Nixpkgs", "nixpkgs", func(n *narrowing) { word(n, &n.made.Nixpkgs, n.asked.Nixpkgs, nil) }},
	{"Network", "network", (*narrowing).network},
	{"Env", "env", (*narrowing).env},
	{
		"PassThrough", "extra_env_passthrough",
		func(n *narrowing) { n.made.PassThrough = fewer(n, n.base.PassThrough, n.asked.PassThrough, hostEnv) },
	},
	{"Secrets", "secrets", func(n *narrowing) { n.made.Secrets = fewer(n, n.base.Secrets, n.asked.Secrets, secret) }},
	{"Mounts", "mounts", (*narrowing).mounts},
	{"State", "state", func(n *narrowing) { word(n, &n.made.State, n.asked.State, lessState) }},
	{"Nix", "nix", (*narrowing).nix},
	{"Git", "git", (*narrowing).git},
	{"SSH", "ssh.hosts", func(n *narrowing) {
		n.made.SSH.Hosts = fewer(n, n.base.SSH.Hosts, n.asked.SSH.Hosts, plain)
	}},
	{"Hide", "hide", func(n *narrowing) { n.made.Hide = more(n, n.base.Hide, n.asked.Hide) }},
	{"Show", "show", func(n *narrowing) { n.made.Show = fewer(n, n.base.Show, n.asked.Show, pattern) }},
	{"Protect", "protect", func(n *narrowing) { n.made.Protect = more(n, n.base.Protect, n.asked.Protect) }},
	{"ProtectMode", "protect_mode", func(n *narrowing) {
		word(n, &n.made.ProtectMode, n.asked.ProtectMode, order(profile.ProtectDefault, profile.ProtectStrict))
	}},
	{"Cache", "cache", func(n *narrowing) {
		word(n, &n.made.Cache, n.asked.Cache, order(profile.CacheProject, profile.CacheEphemeral))
	}},
	{"Ports", "ports", (*narrowing).ports},
	{"Limits", "limits", (*narrowing).limits},
	{
		"MCP", "mcp.import",
		func(n *narrowing) { n.made.MCP.Import = fewer(n, n.base.MCP.Import, n.asked.MCP.Import, plain) },
	},
	{"Compat", "compat", func(n *narrowing) {
		word(n, &n.made.Compat, n.asked.Compat, order(profile.CompatNixLd, profile.CompatOff))
	}},
	{"Toolbox", "toolbox", func(n *narrowing) {
		word(n, &n.made.Toolbox, n.asked.Toolbox, order(profile.ToolboxFull, profile.ToolboxBase))
	}},
	{"Project", "project", func(n *narrowing) {
		word(n, &n.made.Project, n.asked.Project, order(profile.ProjectGitRoot, profile.ProjectCwd))
	}},
	{
		"Worktrees", "worktrees",
		func(n *narrowing) { n.made.Worktrees = fewer(n, n.base.Worktrees, n.asked.Worktrees, pattern) },
	},
	{"Confirm", "confirm", func(n *narrowing) {
		word(n, &n.made.Confirm, n.asked.Confirm,
			order(profile.ConfirmNever, profile.ConfirmChanged, profile.ConfirmAlways))
	}},
}

// less lists, for each word, those that grant less.
type less[W ~string] map[W][]W

// order is a less for words of which each grants less than the one before.
func order[W ~string](words ...W) less[W] {
	l := less[W]{}
	for i, w := range words {
		l[w] = words[i+1:]
	}
	return l
}

// lessState: what one home keeps, the next does not see. A home of its own
// shows nothing of other projects; the shared one does.
var lessState = less[profile.State]{
	profile.StateHost:    {profile.StateProject, profile.StateEphemeral},
	profile.StateShared:  {profile.StateProject, profile.StateEphemeral},
	profile.StateProject: {profile.StateEphemeral},
}

// lessNetwork: tier allow reaches names that lead to the internet only, whatever
// it lists (package network/policy), so it is a part of inet.
var lessNetwork = less[profile.Tier]{
	profile.TierFull:  {profile.TierInet, profile.TierAllow, profile.TierNone},
	profile.TierInet:  {profile.TierAllow, profile.TierNone},
	profile.TierAllow: {profile.TierNone},
}

// word takes a word that grants less, and notes any other.
func word[W ~string](n *narrowing, made *W, asked W, l less[W]) {
	if was := *made; asked != was {
		if slices.Contains(l[was], asked) {
			*made = asked
			return
		}
		n.widens(string(asked)+" instead of "+string(was), "")
	}
}

func (n *narrowing) network() {
	base, asked := n.base.Network, n.asked.Network
	if base.Tier == profile.TierAllow && asked.Tier == profile.TierAllow {
		if n.made.Network.Allow = fewer(n, hostpattern.Expand(base.Allow), hostpattern.Expand(asked.Allow),
			plain); len(n.made.Network.Allow) == 0 && len(base.Allow) > 0 {
			n.made.Network.Tier = profile.TierNone
		}
		n.list()
		return
	}
	word(n, &n.made.Network.Tier, asked.Tier, lessNetwork)
	if n.made.Network.Tier == asked.Tier {
		n.made.Network.Allow = asked.Allow
	}
	n.list()
	switch n.field = "network.except"; {
	case n.made.Network.Tier != profile.TierInet:
		n.made.Network.Except = nil
	case base.Tier == profile.TierFull: // which reaches them all
		n.made.Network.Except = asked.Except
	default:
		n.made.Network.Except = fewer(n, base.Except, asked.Except, plain)
	}
}

// list judges what is said of the hosts of tier allow, which base may not have:
// in tier inet none of them is private. A proxy sees who is asked for what, and
// decides where names lead.
func (n *narrowing) list() {
	base, asked, made := n.base.Network, n.asked.Network, &n.made.Network
	made.Private, made.Via = nil, ""
	if made.Tier != profile.TierAllow {
		return
	}
	n.field = "network.allow, private"
	if base.Tier == profile.TierFull { // which reaches them all
		made.Private = asked.Private
	} else {
		made.Private = fewer(n, base.Private, asked.Private, plain)
	}
	n.field = "network.via"
	if made.Via = base.Via; asked.Via != base.Via {
		n.widens(cmp.Or(asked.Via, "no proxy")+" instead of "+cmp.Or(base.Via, "no proxy"), "")
	}
}

// nix judges two words. They do not depend on one another.
func (n *narrowing) nix() {
	made, asked := &n.made.Nix, n.asked.Nix
	for _, judge := range []struct {
		label string
		do    func()
	}{
		{"nix.daemon", func() {
			word(n, &made.Daemon, asked.Daemon, order(profile.DaemonHost, profile.DaemonOwn, profile.DaemonOff))
		}},
		{"nix.store", func() { word(n, &made.Store, asked.Store, order(profile.StoreFull, profile.StoreClosure)) }},
	} {
		n.field = judge.label
		judge.do()
	}
}

func (n *narrowing) git() {
	n.field = "git.hosts"
	n.made.Git.Hosts = fewer(n, n.base.Git.Hosts, n.asked.Git.Hosts, gitHost)
	n.field = "git.config"
	word(n, &n.made.Git.Config, n.asked.Git.Config, order(profile.GitConfigWritable, profile.GitConfigReadonly))
	n.field = "git.sign"
	word(n, &n.made.Git.Sign, n.asked.Git.Sign, order(profile.GitSignSSH, profile.GitSignOff))
	n.field = "git.ssh_to_https"
	if n.made.Git.SSHToHTTPS = n.base.Git.SSHToHTTPS && n.asked.Git.SSHToHTTPS; n.asked.Git.SSHToHTTPS &&
		!n.base.Git.SSHToHTTPS {
		n.widens("true instead of false", "")
	}
}

// ports of the host are all within reach in tier full, and those inside from
// the host: any list is less.
func (n *narrowing) ports() {
	if n.base.Network.Tier == profile.TierFull {
		n.made.Ports = n.asked.Ports
		return
	}
	n.field = "ports.in"
	n.made.Ports.In = fewer(n, n.base.Ports.In, n.asked.Ports.In, port)
	n.field = "ports.out"
	n.made.Ports.Out = fewer(n, n.base.Ports.Out, n.asked.Ports.Out, port)
}

// limits may become smaller, or be set where there was none.
func (n *narrowing) limits() {
	base, asked, made := n.base.Limits, n.asked.Limits, &n.made.Limits
	for _, l := range []struct {
		label   string
		was, is int64
		take    func()
	}{
		{"memory", base.Memory, asked.Memory, func() { made.Memory = asked.Memory }},
		{"tasks", int64(base.Tasks), int64(asked.Tasks), func() { made.Tasks = asked.Tasks }},
		{"cpu", int64(base.CPU), int64(asked.CPU), func() { made.CPU = asked.CPU }},
	} {
		n.field = "limits." + l.label
		switch {
		case l.is == l.was:
		case l.is != 0 && (l.was == 0 || l.is < l.was):
			l.take()
		default:
			n.widens(fmt.Sprintf("%d instead of %d", l.is, l.was), "")
		}
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
