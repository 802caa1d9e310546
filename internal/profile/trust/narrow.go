package trust

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag/layout"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/network/hostpattern"
	"claudebox/internal/profile"
	"claudebox/internal/secret/leak"
)

// Widening is one thing that a project's profile asks for beyond the user's profile.
type Widening struct {
	What   string         // in full: "network: full instead of inet"
	Origin profile.Origin // where the profile asks for it; zero if that is not known
}

// mostShown is the length, in characters, to which a widening is cut to show it in
// one line.
const mostShown = 120

// Short returns What, cut in the middle if it is long.
func (w Widening) Short() string { return layout.Shorten(w.What, mostShown) }

// Place has the folders that "~/" and "./" in a profile stand for, and the mounts
// that do not come from profiles.
type Place struct {
	Home    string // the user's home
	Project string // root of the project
	// Mounted are the destinations of mounts from flags of this launch, absolute.
	Mounted []string
}

// Narrow compares base with asked, which is base with a project's profile merged on
// top. It returns base without all that asked takes away, and a list of what asked
// would add. A change that does not certainly grant the same or less counts as added.
func Narrow(base, asked profile.Profile, at Place) (profile.Profile, []Widening) {
	n := narrowing{base: base, asked: asked, made: base, at: at}
	for _, s := range settings {
		n.label = s.label
		s.judge(&n)
	}
	n.made.Sources = asked.Sources
	return n.made, n.widenings
}

// narrowing is the state of one call of [Narrow].
type narrowing struct {
	base, asked profile.Profile
	made        profile.Profile // base, narrowed so far
	at          Place
	label       string // of the setting that is compared now
	widenings   []Widening
}

func (n *narrowing) widens(what string, origin profile.Origin) {
	n.widenings = append(n.widenings, Widening{n.label + ": " + what, origin})
}

func (n *narrowing) replaces(asked, was string) { n.widens(asked+" instead of "+was, profile.Origin{}) }
func (n *narrowing) drops(what string)          { n.widens("no longer "+what, profile.Origin{}) }

// setting says how one setting of the two profiles is compared.
type setting struct {
	field string // its field in [profile.Profile]
	label string // its key in YAML, for messages
	judge func(*narrowing)
}

type prof = profile.Profile

// settings are all settings of a profile except its name, description and sources.
var settings = []setting{
	{"Agent", "agent", (*narrowing).agent},
	{"Packages", "packages", (*narrowing).packages},
	{"Nixpkgs", "nixpkgs", word(func(p *prof) *string { return &p.Nixpkgs })},
	{"Network", "network", (*narrowing).network},
	{
		"Network", "network.allow, private",
		reached(profile.TierAllow, func(p *prof) *[]string { return &p.Network.Private }),
	},
	{"Network", "network.via", (*narrowing).via},
	{"Network", "network.except", reached(profile.TierInet, func(p *prof) *[]string { return &p.Network.Except })},
	{"Env", "env", (*narrowing).env},
	{"PassThrough", "extra_env_passthrough", list(func(p *prof) *[]profile.Entry { return &p.PassThrough })},
	{"Secrets", "secrets", fixed(func(p *prof) *[]profile.Secret { return &p.Secrets })},
	{"Mounts", "mounts", (*narrowing).mounts},
	{"State", "state", (*narrowing).state},
	{"Nix", "nix.daemon", word(func(p *prof) *string { return &p.Nix.Daemon })},
	{"Nix", "nix.store", word(func(p *prof) *string { return &p.Nix.Store })},
	{"Devshell", "devshell", (*narrowing).devshell},
	{"Git", "git.hosts", fixed(func(p *prof) *[]profile.GitHost { return &p.Git.Hosts })},
	{"Git", "git.config", word(func(p *prof) *string { return &p.Git.Config })},
	{"Git", "git.sign", word(func(p *prof) *string { return &p.Git.Sign })},
	{"Git", "git.ssh_to_https", (*narrowing).sshToHTTPS},
	{"SSHHosts", "ssh.hosts", list(func(p *prof) *[]string { return &p.SSHHosts })},
	{"Hide", "hide", restrictions(func(p *prof) *[]profile.Entry { return &p.Hide })},
	{"Show", "show", list(func(p *prof) *[]profile.Entry { return &p.Show })},
	{"Protect", "protect", restrictions(func(p *prof) *[]profile.Entry { return &p.Protect })},
	{"ProtectMode", "protect_mode", word(func(p *prof) *string { return &p.ProtectMode })},
	{"Cache", "cache", word(func(p *prof) *string { return &p.Cache })},
	{"Network", "ports.in", reached("", func(p *prof) *[]int { return &p.Network.In })},
	{"Network", "ports.out", reached("", func(p *prof) *[]int { return &p.Network.Out })},
	{"Limits", "limits.memory", limit(func(p *prof) *int64 { return &p.Limits.Memory })},
	{"Limits", "limits.tasks", limit(func(p *prof) *int { return &p.Limits.Tasks })},
	{"Limits", "limits.cpu", limit(func(p *prof) *int { return &p.Limits.CPU })},
	{"MCP", "mcp.import", list(func(p *prof) *[]string { return &p.MCP })},
	{"Compat", "compat", word(func(p *prof) *string { return &p.Compat })},
	{"Toolbox", "toolbox", word(func(p *prof) *string { return &p.Toolbox })},
	{"Project", "project", word(func(p *prof) *string { return &p.Project })},
	{"Worktrees", "worktrees", list(func(p *prof) *[]profile.Entry { return &p.Worktrees })},
	{"Confirm", "confirm", word(func(p *prof) *string { return &p.Confirm })},
}

// word returns a judge for a setting with fixed values: it takes a value that grants
// less by [profile.ByGrant], and notes any other as a widening.
func word(in func(*prof) *string) func(*narrowing) {
	return func(n *narrowing) {
		order := profile.ByGrant[n.label]
		was, asked := *in(&n.base), *in(&n.asked)
		switch less := slices.Index(order, asked); {
		case asked == was:
		case less >= 0 && less < slices.Index(order, was):
			*in(&n.made) = asked
		default:
			n.replaces(asked, was)
		}
	}
}

// list returns a judge for a list whose entries grant something: entries may be
// missing, and new ones are widenings.
func list[T listed](in func(*prof) *[]T) func(*narrowing) {
	return func(n *narrowing) { *in(&n.made) = fewer(n, *in(&n.base), *in(&n.asked)) }
}

// fixed returns a judge for a list of secrets that are used from outside: each entry grants the use of one, and keeps
// it out of all variables. So new entries are widenings, and missing ones, too.
func fixed[T listed](in func(*prof) *[]T) func(*narrowing) {
	return func(n *narrowing) {
		fewer(n, *in(&n.base), *in(&n.asked))
		dropped(n, *in(&n.base), *in(&n.asked))
	}
}

// limit returns a judge for a limit, where 0 means none: it may become smaller, or
// be set if there was none; any other change is a widening.
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

// state compares where the agent's home is kept. A home of the project's own shows
// nothing of other projects; the shared one does, so to ask for it is always a
// widening.
func (n *narrowing) state() {
	if n.asked.State == profile.StateShared && n.base.State != profile.StateShared {
		n.replaces(n.asked.State, n.base.State)
		return
	}
	word(func(p *prof) *string { return &p.State })(n)
}

// network compares the tier, and the hosts of tier allow. To go from inet to allow
// with any hosts is narrower: tier allow reaches only names that lead to the
// internet, whatever it lists (package network/policy), so it is a part of inet.
func (n *narrowing) network() {
	base, asked, made := n.base.Network, n.asked.Network, &n.made.Network
	if base.Tier == profile.TierAllow && asked.Tier == profile.TierAllow {
		made.Allow = fewer(n, hostpattern.Expand(base.Allow), hostpattern.Expand(asked.Allow))
		if len(made.Allow) == 0 && len(base.Allow) > 0 {
			made.Tier = profile.TierNone
		}
		return
	}
	word(func(p *prof) *string { return &p.Network.Tier })(n)
	if made.Tier == asked.Tier {
		made.Allow = asked.Allow
	}
}

// reached returns a judge for a list of what can be reached. A list for one tier
// only is dropped under any other; tier is empty for a list that all tiers have. If
// base has tier full, everything can be reached already, also the ports of the host
// and, from the host, those inside: then any list is taken. Otherwise new entries
// are widenings, also private hosts over a base of tier inet, which reaches none.
func reached[T listed](tier string, in func(*prof) *[]T) func(*narrowing) {
	return func(n *narrowing) {
		switch {
		case tier != "" && n.made.Network.Tier != tier:
			*in(&n.made) = nil
		case n.base.Network.Tier == profile.TierFull:
			*in(&n.made) = *in(&n.asked)
		default:
			list(in)(n)
		}
	}
}

// via compares the proxies. Any change is a widening: a proxy sees which hosts are
// contacted, and decides where their names lead.
func (n *narrowing) via() {
	base, asked, made := n.base.Network, n.asked.Network, &n.made.Network
	if made.Tier != profile.TierAllow {
		made.Via = ""
		return
	}
	made.Via = base.Via
	if asked.Via != base.Via {
		n.replaces(cmp.Or(asked.Via, "no proxy"), cmp.Or(base.Via, "no proxy"))
	}
}

func (n *narrowing) sshToHTTPS() {
	was, asked := n.base.Git.SSHToHTTPS, n.asked.Git.SSHToHTTPS
	n.made.Git.SSHToHTTPS = was && asked
	if asked && !was {
		n.replaces(strconv.FormatBool(asked), strconv.FormatBool(was))
	}
}

// absolute returns a mount's path with "~" and "./" replaced by the folders they stand for.
func (p Place) absolute(name string) string {
	if rest, ok := strings.CutPrefix(name, "~"); ok && (rest == "" || rest[0] == '/') {
		return path.Join(p.Home, rest)
	}
	if rest, ok := strings.CutPrefix(name, "./"); ok {
		return path.Join(p.Project, rest)
	}
	return name
}

// listed are the types of the entries of lists.
type listed interface {
	string | int | profile.Entry | profile.Constant | profile.Secret | profile.GitHost | profile.Package
}

// entry returns the full text of what an entry of a list grants, with its origin.
// Two entries with the same text grant the same.
func entry[T listed](of T) profile.Entry {
	switch v := any(of).(type) {
	case profile.Entry:
		return v
	case profile.Constant:
		return profile.Entry{Text: v.Name + "=" + v.Value, Origin: v.Origin}
	case profile.Secret:
		return profile.Entry{Text: secretText(v), Origin: v.Origin}
	case profile.GitHost:
		return profile.Entry{Text: v.Host + " with " + v.Variable, Origin: v.Origin}
	case profile.Package:
		return profile.Entry{Text: v.String(), Origin: v.Origin}
	}
	return profile.Entry{Text: fmt.Sprint(of)}
}

func secretText(s profile.Secret) string {
	said := s.Variable + " for " + strings.Join(s.Hosts, " ") + strings.Join(append([]string{" as"}, s.As...), " ") +
		" " + s.Header + " " + s.File
	if len(s.Write) > 0 {
		said += " write " + strings.Join(s.Write, " ")
	}
	if s.Inside {
		said += " inside"
	}
	return strings.TrimSpace(said)
}

// split divides a list into the entries that other has, too, and those that it has not.
func split[T listed](list, other []T) (shared, alone []T) {
	known := make(map[string]bool, len(other))
	for _, t := range other {
		known[entry(t).Text] = true
	}
	for _, t := range list {
		if known[entry(t).Text] {
			shared = append(shared, t)
		} else {
			alone = append(alone, t)
		}
	}
	return shared, alone
}

// fewer returns the entries that are in both lists, and notes those that are only
// in asked as widenings.
func fewer[T listed](n *narrowing, base, asked []T) []T {
	kept, added := split(asked, base)
	for _, t := range added {
		n.widens(entry(t).Text, entry(t).Origin)
	}
	return kept
}

// dropped notes the entries that are only in base as widenings.
func dropped[T listed](n *narrowing, base, asked []T) {
	_, missing := split(base, asked)
	for _, t := range missing {
		n.drops(entry(t).Text)
	}
}

// restrictions returns a judge for a list whose entries protect something: new
// entries are taken, and missing ones are widenings.
func restrictions(in func(*prof) *[]profile.Entry) func(*narrowing) {
	return func(n *narrowing) {
		base, asked := *in(&n.base), *in(&n.asked)
		dropped(n, base, asked)
		_, added := split(asked, base)
		*in(&n.made) = slices.Concat(base, added)
	}
}

// agent compares the agents as a whole: any change is a widening, as it is not known
// what another program does.
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
	text := ""
	for _, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n\"") {
			word = strconv.Quote(word) // words that hold blanks are kept apart
		}
		text += " " + word
	}
	for _, v := range a.Env {
		text += " with " + v.Text
	}
	for _, folder := range slices.Sorted(maps.Keys(a.Home)) {
		text += ", " + a.Home[folder] + " " + folder
	}
	return text[1:]
}

// devshell takes what the project says of its dev shell, which adds programs of the project's own inside. It may not
// bring in variables that claudebox leaves out, nor a dev shell where the user wants none.
func (n *narrowing) devshell() {
	base, asked, made := n.base.Devshell, n.asked.Devshell, &n.made.Devshell
	off := func(d profile.Devshell) bool { return d.Flake == "" && d.File == "" }
	if off(base) {
		if !off(asked) {
			n.replaces(cmp.Or(asked.Flake, asked.File), profile.DevshellOff)
		}
		return
	}
	*made = asked
	made.Vars = fewer(n, base.Vars, asked.Vars)
}

// packages compares the packages: some may be missing. New ones are widenings, and
// so is another order, as it is that of PATH and other programs would run.
func (n *narrowing) packages() {
	kept := fewer(n, n.base.Packages, n.asked.Packages)
	rest := n.base.Packages
	for _, p := range kept {
		at := slices.IndexFunc(rest, func(b profile.Package) bool { return b.String() == p.String() })
		if at < 0 {
			n.widens("another order on PATH", profile.Origin{})
			return
		}
		rest = rest[at+1:]
	}
	n.made.Packages = kept
}

// env compares constants: any change is a widening. It is not known what a variable
// does to programs, nor what they do without it.
func (n *narrowing) env() {
	_, added := split(n.asked.Env, n.base.Env)
	for _, c := range added {
		text := entry(c).Text
		if leak.Variable(c.Name, c.Value) != "" {
			text = c.Name + ", which looks like a secret"
		}
		n.widens(text, c.Origin)
	}
	for _, was := range n.base.Env {
		if !slices.ContainsFunc(n.asked.Env, func(is profile.Constant) bool { return is.Name == was.Name }) {
			n.drops(was.Name)
		}
	}
}

// mounts compares the mounts: they may be missing or become read-only. One that lies
// in the project or in another mount stays, because it may cover files there, which
// would become visible without it.
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
		case kept && is.Host == was.Host && (was.Writable || !is.Writable) && (was.Secret || !is.Secret):
			made = append(made, is)
		case kept:
			n.widens(mountText(is)+" instead of "+mountText(was), is.Origin)
			made = append(made, was)
		default:
			n.drops(mountText(was) + ", which may cover something")
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

// covers reports whether m lies in the project or in another mount, so that
// something could become visible if it were left out.
func (n *narrowing) covers(m profile.Mount) bool {
	at := n.at.absolute(m.Sandbox)
	within := func(place string) bool { return pathname.Below(at, place) }
	return within(n.at.Project) || slices.ContainsFunc(n.at.Mounted, within) ||
		slices.ContainsFunc(n.base.Mounts, func(other profile.Mount) bool {
			return other.Sandbox != m.Sandbox && pathname.Below(at, n.at.absolute(other.Sandbox))
		})
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
