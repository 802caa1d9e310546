package grant

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/network/hostpattern"
	"claudebox/internal/profile"
	"claudebox/internal/secret/leak"
)

// setting is a key of a profile: its field in [profile.Profile], and what a change of it lets in.
type setting struct {
	key, field string
	rule       rule
}

// settings are all keys of a profile except its name, its description and what it extends.
var settings = []setting{
	{"agent", "Agent", fixed},
	{"packages", "Packages", rule{goes: Less}},
	{"nixpkgs", "Nixpkgs", fixed},
	{"network", "Network.Tier", words("none allow inet full")},
	{"network.allow", "Network.Allow", adds},
	{"network.private", "Network.Private", adds},
	// a proxy sees who is contacted, and decides where names lead
	{"network.via", "Network.Via", fixed},
	{"network.except", "Network.Except", adds},
	{"env", "Env", fixed},
	{"extra_env_passthrough", "PassThrough", adds},
	{"secrets", "Secrets", used},
	{"mounts", "Mounts", rule{rights: true, other: More}},
	{"state", "State", words("ephemeral project host shared", "ephemeral project shared host")},
	{"nix.daemon", "Nix.Daemon", words("off own host")},
	{"nix.store", "Nix.Store", words("closure full")},
	{"devshell", "Devshell", rule{chains: [][]string{{"off", "on"}}, other: Less}}, // it is the project's own
	{"devshell.vars", "Devshell.Vars", adds},
	{"git.hosts", "Git.Hosts", used},
	{"git.config", "Git.Config", words("readonly writable")},
	{"git.sign", "Git.Sign", words("off ssh")},
	{"git.ssh_to_https", "Git.SSHToHTTPS", words("false true")},
	{"ssh.hosts", "SSHHosts", adds},
	{"hide", "Hide", protects},
	{"show", "Show", adds},
	{"protect", "Protect", protects},
	{"protect_mode", "ProtectMode", words("strict default")},
	{"cache", "Cache", words("ephemeral project")},
	{"ports.in", "Network.In", adds},
	{"ports.out", "Network.Out", adds},
	{"limits.memory", "Limits.Memory", limits},
	{"limits.tasks", "Limits.Tasks", limits},
	{"limits.cpu", "Limits.CPU", limits},
	{"mcp.import", "MCP", adds},
	{"compat", "Compat", words("off nix-ld")},
	{"toolbox", "Toolbox", words("base full")},
	{"project", "Project", words("cwd git-root")},
	{"workspace", "Workspace", words("branch project")},
	{"worktrees", "Worktrees", adds},
	{"confirm", "Confirm", words("always changed never")},
}

// in returns the setting's field.
func (s setting) in(p *profile.Profile) reflect.Value {
	v := reflect.ValueOf(p).Elem()
	for name := range strings.SplitSeq(s.field, ".") {
		v = v.FieldByName(name)
	}
	return v
}

// OfProfile returns what a profile lets in.
func OfProfile(p profile.Profile) (set Set) {
	p = canonical(p)
	for _, s := range settings {
		set = append(set, s.grants(s.in(&p))...)
	}
	return set
}

// canonical returns the profile with its presets of hosts expanded, and without the lists that do not count in its
// tier.
func canonical(p profile.Profile) profile.Profile {
	p.Network = p.Network.Under(p.Network.Tier)
	p.Network.Allow = hostpattern.Expand(p.Network.Allow)
	return p
}

func (s setting) grants(v reflect.Value) (list []Grant) {
	if v.Kind() != reflect.Slice {
		return []Grant{s.one(v.Interface())}
	}
	for i := range v.Len() {
		list = append(list, s.entry(v.Index(i)))
	}
	return list
}

// one returns the grant of a setting that has one value.
func (s setting) one(value any) Grant {
	switch v := value.(type) {
	case profile.Agent:
		return Grant{Key: s.key, Of: agentText(v)}
	case profile.Devshell:
		if shell := cmp.Or(v.Flake, v.File); shell != "" {
			return Grant{Key: s.key, Level: "on", Of: shell}
		}
		return Grant{Key: s.key, Level: profile.DevshellOff}
	}
	return One(s.key, fmt.Sprint(value))
}

// One returns the grant of a key that has one value.
func One(key, value string) Grant {
	if rules[key].leveled() {
		return Grant{Key: key, Level: value}
	}
	return Grant{Key: key, Of: value}
}

// entry returns the grant of an entry of a list.
func (s setting) entry(of reflect.Value) Grant {
	g := Grant{Key: s.key}
	var from profile.Origin
	switch v := of.Interface().(type) {
	case profile.Entry:
		g.Name, from = v.Text, v.Origin
	case profile.Constant:
		g.Name, g.Of, from = v.Name, v.Value, v.Origin
		if leak.Variable(v.Name, v.Value) != "" { // it is kept with what was approved
			g.Level, g.Of = "secret", fmt.Sprintf("sha256 %x", sha256.Sum256([]byte(v.Value)))
		}
	case profile.Secret:
		g.Name, from = secretText(v), v.Origin
	case profile.GitHost:
		g.Name, from = v.Host+" with "+v.Variable, v.Origin
	case profile.Package:
		g.Name, from = v.String(), v.Origin
	case profile.Mount:
		g.Name, g.Level, g.Of, from = v.Sandbox, rights(v.Writable, v.Secret), v.Host, v.Origin
	default:
		g.Name = fmt.Sprint(v)
	}
	g.Why = from.String()
	return g
}

func rights(writable, secret bool) string {
	text := "ro"
	if writable {
		text = "rw"
	}
	if secret {
		text += " secret"
	}
	return text
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

// Words joins words, so that those which hold blanks are kept apart.
func Words(words []string) string {
	var quoted []string
	for _, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n\"") {
			word = strconv.Quote(word)
		}
		quoted = append(quoted, word)
	}
	return strings.Join(quoted, " ")
}

func agentText(a profile.Agent) string {
	text := cmp.Or(Words(a.Command), Words([]string{a.Name}))
	for _, v := range a.Env {
		text += " with " + v.Text
	}
	for _, folder := range slices.Sorted(maps.Keys(a.Home)) {
		text += ", " + a.Home[folder] + " " + folder
	}
	return text
}

// Place has the folders that "~/" and "./" in a profile stand for, and the mounts that do not come from profiles.
type Place struct {
	Home    string // the user's home
	Project string // root of the project
	// Mounted are the destinations of mounts from flags of this launch, absolute.
	Mounted []string
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

// Narrow compares base with asked, which is base with a project's profile merged on top. It returns base without all
// that asked takes away, and what asked would let in besides. A change that does not certainly let in the same or less
// counts as that.
func Narrow(base, asked profile.Profile, at Place) (profile.Profile, []Change) {
	base, asked = canonical(base), canonical(asked)
	sides := Sides{Before: OfProfile(base), After: OfProfile(asked), Absolute: at.absolute}
	for _, place := range append([]string{at.Project}, at.Mounted...) {
		sides.Shared = append(sides.Shared, Grant{Key: Mount, Name: place, Level: "rw", Of: place})
	}
	widens := map[string][]Change{} // by key
	for _, c := range sides.Changes() {
		if c.Verdict != Less {
			widens[c.Key()] = append(widens[c.Key()], c)
		}
	}
	if len(widens["network"]) > 0 { // then its lists are of another tier
		for _, key := range []string{"network.allow", "network.private", "network.via", "network.except"} {
			delete(widens, key)
		}
		asked.Network.Allow, asked.Network.Private = base.Network.Allow, base.Network.Private
		asked.Network.Via, asked.Network.Except = base.Network.Via, base.Network.Except
	}
	made := base
	var list []Change
	for _, s := range settings {
		s.in(&made).Set(s.narrowed(s.in(&base), s.in(&asked), widens[s.key]))
		list = append(list, widens[s.key]...)
	}
	if n := &made.Network; n.Tier == profile.TierAllow && len(n.Allow) == 0 && len(base.Network.Allow) > 0 {
		n.Tier = profile.TierNone // an empty list stands for the agent's own hosts
	}
	made.Network = made.Network.Under(made.Network.Tier)
	made.Sources = asked.Sources
	return made, list
}

// narrowed returns a setting of base as far as asked takes something away; widens are its changes that do not.
func (s setting) narrowed(base, asked reflect.Value, widens []Change) reflect.Value {
	isWider := func(name string) bool {
		return slices.ContainsFunc(widens, func(c Change) bool { return c.Before.Name == name || c.After.Name == name })
	}
	switch {
	case len(widens) == 0:
		return asked
	case base.Kind() != reflect.Slice || isWider(Order):
		return base
	}
	made := reflect.Zero(base.Type())
	known := map[string]reflect.Value{}
	for i := range asked.Len() {
		known[s.entry(asked.Index(i)).Name] = asked.Index(i)
	}
	for i := range base.Len() {
		name := s.entry(base.Index(i)).Name
		is, stays := known[name]
		delete(known, name)
		switch {
		case isWider(name):
			made = reflect.Append(made, base.Index(i))
		case stays:
			made = reflect.Append(made, is)
		}
	}
	for i := range asked.Len() {
		if name := s.entry(asked.Index(i)).Name; known[name].IsValid() && !isWider(name) {
			made = reflect.Append(made, asked.Index(i))
		}
	}
	return made
}

// String says what the change of a profile is: "network: full instead of inet".
func (c Change) String() string {
	key := c.Key()
	said, was := text(c.After), text(c.Before)
	switch {
	case c.Went() && key == "mounts":
		said = "no longer " + was + ", which may cover something"
	case c.Went() && key == "env":
		said = "no longer " + c.Before.Name
	case c.Went():
		said = "no longer " + was
	case !c.Came() && (c.After.Name == "" || key == "mounts"):
		said += " instead of " + was
	}
	return cmp.Or(labels[key], key) + ": " + said
}

// labels are what keys are called where that is not their name.
var labels = map[string]string{
	"network.allow": "network", "network.private": "network.allow, private", "devshell.vars": "devshell",
}

// text says what a grant of a profile is.
func text(g Grant) string {
	switch g.Key {
	case "env":
		if g.Level == "secret" {
			return g.Name + ", which looks like a secret"
		}
		return g.Name + "=" + g.Of
	case "mounts":
		return mountText(g)
	case "network.via":
		return cmp.Or(g.Of, "no proxy")
	}
	return cmp.Or(g.Name, g.Of, g.Level)
}

func mountText(g Grant) string {
	text := g.Of
	if g.Name != g.Of {
		text += " at " + g.Name
	}
	text += strings.NewReplacer("ro", ", read-only", "rw", ", read-write", " secret", ", secret").Replace(g.Level)
	if there, relation := profile.Exposes(g.Of); relation != profile.Apart {
		text += " (" + there.What + ")"
	}
	return text
}
