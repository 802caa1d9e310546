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
	{"Nix", "nix.daemon", word(func(p *prof) *string { return &p.Nix.Daemon })},
	{"Nix", "nix.store", word(func(p *prof) *string { return &p.Nix.Store })},
	{"Git", "git.hosts", list(func(p *prof) *[]profile.GitHost { return &p.Git.Hosts }, gitHost)},
	{"Git", "git.config", word(func(p *prof) *string { return &p.Git.Config })},
	{"Git", "git.sign", word(func(p *prof) *string { return &p.Git.Sign })},
	{"Git", "git.ssh_to_https", (*narrowing).sshToHTTPS},
	{"SSH", "ssh.hosts", list(func(p *prof) *[]string { return &p.SSH.Hosts }, plain)},
	{"Hide", "hide", restrictions(func(p *prof) *[]profile.Pattern { return &p.Hide })},
	{"Show", "show", list(func(p *prof) *[]profile.Pattern { return &p.Show }, pattern)},
	{"Protect", "protect", restrictions(func(p *prof) *[]profile.Pattern { return &p.Protect })},
	{"ProtectMode", "protect_mode", word(func(p *prof) *string { return &p.ProtectMode })},
	{"Cache", "cache", word(func(p *prof) *string { return &p.Cache })},
	{"Network", "ports.in", ports(func(p *prof) *[]int { return &p.Network.In })},
	{"Network", "ports.out", ports(func(p *prof) *[]int { return &p.Network.Out })},
	{"Limits", "limits.memory", limit(func(p *prof) *int64 { return &p.Limits.Memory })},
	{"Limits", "limits.tasks", limit(func(p *prof) *int { return &p.Limits.Tasks })},
	{"Limits", "limits.cpu", limit(func(p *prof) *int { return &p.Limits.CPU })},
	{"MCP", "mcp.import", list(func(p *prof) *[]string { return &p.MCP.Import }, plain)},
	{"Compat", "compat", word(func(p *prof) *string { return &p.Compat })},
	{"Toolbox", "toolbox", word(func(p *prof) *string { return &p.Toolbox })},
	{"Project", "project", word(func(p *prof) *string { return &p.Project })},
	{"Worktrees", "worktrees", list(func(p *prof) *[]profile.Pattern { return &p.Worktrees }, pattern)},
	{"Confirm", "confirm", word(func(p *prof) *string { return &p.Confirm })},
}

// word takes a word that grants less, and notes any other.
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
		n.replaces(n.asked.State, n.base.State)
		return
	}
	word(func(p *prof) *string { return &p.State })(n)
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
	word(func(p *prof) *string { return &p.Network.Tier })(n)
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
func (n *narrowing) reached(tier string, base, asked []string) []string {
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
	text := ""
	for _, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n\"") {
			word = strconv.Quote(word) // words that hold blanks are kept apart
		}
		text += " " + word
	}
	for _, v := range a.Env {
		text += " with " + v.Name
	}
	for _, folder := range slices.Sorted(maps.Keys(a.Home)) {
		text += ", " + a.Home[folder] + " " + folder
	}
	return text[1:]
}

// packages may be left out. Their order is that of PATH: another one runs
// other programs.
func (n *narrowing) packages() {
	kept := fewer(n, n.base.Packages, n.asked.Packages, packageRef)
	rest := n.base.Packages
	for _, p := range kept {
		at := slices.IndexFunc(rest, func(b profile.Package) bool { return withOutputs(b) == withOutputs(p) })
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
		case kept && is.Host == was.Host && (was.Writable || !is.Writable) && (was.Secret || !is.Secret):
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
