package profile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/profile/shape"
)

// build makes the typed profile of a merged and judged document.
func build(v shape.Value) Profile {
	return Profile{
		Name:        text(v, "name"),
		Description: text(v, "description"),
		Agent:       buildAgent(v.Get("agent")),
		Packages:    buildPackages(v.Get("packages").Items),
		Nixpkgs:     text(v, "nixpkgs"),
		Network:     buildNetwork(v.Get("network")),
		Env:         buildEnv(v.Get("env").Members),
		PassThrough: buildHostEnv(v.Get("extra_env_passthrough").Items),
		Secrets:     buildSecrets(v.Get("secrets").Items),
		Mounts:      buildMounts(v.Get("mounts").Items),
		State:       State(text(v, "state")),
		Nix:         buildNix(v.Get("nix")),
		Git:         buildGit(v.Get("git")),
		SSH:         SSH{Hosts: slices.Sorted(slices.Values(unique(lower(v.Get("ssh").Get("hosts").Texts()))))},
		Hide:        buildPatterns(v.Get("hide").Items),
		Show:        buildPatterns(v.Get("show").Items),
		Protect:     buildPatterns(v.Get("protect").Items),
		ProtectMode: ProtectMode(text(v, "protect_mode")),
		Cache:       Cache(text(v, "cache")),
		Ports:       Ports{In: numbers(v.Get("ports").Get("in")), Out: numbers(v.Get("ports").Get("out"))},
		Limits:      buildLimits(v.Get("limits")),
		MCP:         MCP{Import: unique(v.Get("mcp").Get("import").Texts())},
		Compat:      Compat(text(v, "compat")),
		Toolbox:     Toolbox(text(v, "toolbox")),
		Project:     ProjectRoot(text(v, "project")),
		Worktrees:   buildPatterns(v.Get("worktrees").Items),
		Confirm:     Confirm(text(v, "confirm")),
	}
}

// text is what a profile says under a key of its top level, or the default.
func text(v shape.Value, key string) string { return said(&schema, v, key) }

// said is what a record says under a key, or the default.
func said(s *shape.Shape, v shape.Value, key string) string {
	if value := v.Get(key); value.Said() {
		return value.Text
	}
	return s.Key(key).Unsaid()
}

// origin is a place as the profile shows it: "work:12".
func origin(at shape.Place) Origin {
	return Origin(at.Doc.Name + ":" + strconv.Itoa(at.Line))
}

func buildAgent(v shape.Value) Agent {
	agent := Agent{
		Name:    v.Get("name").Text,
		Command: v.Get("command").Texts(),
		Env:     buildHostEnv(v.Get("env").Items),
	}
	switch {
	case agent.Name != "":
	case len(agent.Command) > 0:
		agent.Name = path.Base(agent.Command[0])
	default:
		agent.Name = agentShape.Key("name").Default
	}
	for _, m := range v.Get("home").Members {
		if agent.Home == nil {
			agent.Home = make(map[string]string)
		}
		agent.Home[m.Key] = m.Value.Text
	}
	return agent
}

// buildPackages keeps the first of what is listed twice: it is the one that
// counts on PATH.
func buildPackages(items []shape.Value) []Package {
	var packages []Package
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		if seen[item.Text] {
			continue
		}
		seen[item.Text] = true
		attr, outputs := splitPackage(item.Text)
		packages = append(packages, Package{Attr: attr, Outputs: outputs, Origin: origin(item.Place)})
	}
	return packages
}

// buildNetwork drops an inherited list of hosts when the tier has no use for
// it any more.
func buildNetwork(v shape.Value) Network {
	network := Network{Tier: Tier(said(&networkShape, v, "tier"))}
	if network.Tier == TierAllow {
		for _, item := range v.Get("allow").Items {
			host := item.Get("host").Text
			network.Allow = append(network.Allow, host)
			if item.Get("private").Text == "true" {
				network.Private = append(network.Private, host)
			}
		}
		network.Allow, network.Private = unique(lower(network.Allow)), unique(lower(network.Private))
		network.Via = v.Get("via").Text
	}
	if network.Tier == TierInet {
		network.Except = unique(v.Get("except").Texts())
	}
	return network
}

// lower folds host names: DNS does not tell cases apart.
func lower(texts []string) []string {
	for i, text := range texts {
		texts[i] = strings.ToLower(text)
	}
	return texts
}

func unique(texts []string) []string {
	seen := make(map[string]bool, len(texts))
	return slices.DeleteFunc(texts, func(text string) bool {
		again := seen[text]
		seen[text] = true
		return again
	})
}

func buildEnv(members []shape.Member) []Constant {
	var constants []Constant
	for _, m := range members {
		constants = append(constants, Constant{Name: m.Key, Value: m.Value.Text, Origin: origin(m.Place)})
	}
	slices.SortFunc(constants, func(a, b Constant) int { return cmp.Compare(a.Name, b.Name) })
	return constants
}

func buildHostEnv(items []shape.Value) []HostEnv {
	var variables []HostEnv
	for _, item := range items {
		variables = append(variables, HostEnv{Name: item.Text, Origin: origin(item.Place)})
	}
	slices.SortStableFunc(variables, func(a, b HostEnv) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(variables, func(a, b HostEnv) bool { return a.Name == b.Name })
}

func buildSecrets(items []shape.Value) []Secret {
	var secrets []Secret
	for _, item := range items {
		s := Secret{
			Variable: item.Get("env").Text, Hosts: unique(lower(item.Get("hosts").Texts())),
			As:     unique(item.Get("as").Texts()),
			Header: item.Get("header").Text, Inside: item.Get("secret").Text == "inside", Origin: origin(item.Place),
		}
		if file := item.Get("file"); file.Said() {
			s.File = cleanPath(file.Text)
		}
		if len(s.As) == 0 && s.Header == "" {
			s.As = []string{"bearer", "basic"}
		}
		slices.Sort(s.Hosts)
		secrets = append(secrets, s)
	}
	slices.SortStableFunc(secrets, func(a, b Secret) int { return cmp.Compare(a.Variable, b.Variable) })
	return secrets
}

func buildMounts(items []shape.Value) []Mount {
	var mounts []Mount
	for _, item := range items {
		mounts = append(mounts, buildMount(item))
	}
	slices.SortStableFunc(mounts, func(a, b Mount) int { return cmp.Compare(a.Sandbox, b.Sandbox) })
	return slices.CompactFunc(mounts, sameMount)
}

func buildMount(v shape.Value) Mount {
	m := Mount{
		Host:     cleanPath(v.Get("host").Text),
		Writable: v.Get("mode").Text == "rw",
		Optional: v.Get("optional").Text == "true",
		Secret:   v.Get("secret").Text == "true",
		Origin:   origin(v.Place),
	}
	m.Sandbox = m.Host
	if sandbox := v.Get("sandbox"); sandbox.Said() {
		m.Sandbox = cleanPath(sandbox.Text)
	}
	return m
}

// sameMount reports whether two mounts say the same, wherever they say it.
func sameMount(a, b Mount) bool {
	a.Origin = b.Origin
	return a == b
}

func buildNix(v shape.Value) Nix {
	return Nix{
		Daemon: Daemon(said(&nixShape, v, "daemon")),
		Store:  Store(said(&nixShape, v, "store")),
	}
}

func buildGit(v shape.Value) Git {
	git := Git{
		SSHToHTTPS: said(&gitShape, v, "ssh_to_https") == "true",
		Config:     GitConfig(said(&gitShape, v, "config")),
		Sign:       GitSign(said(&gitShape, v, "sign")),
	}
	for _, m := range v.Get("hosts").Members {
		host := GitHost{Host: strings.ToLower(m.Key), Variable: m.Value.Text, Origin: origin(m.Place)}
		git.Hosts = append(git.Hosts, host)
	}
	slices.SortFunc(git.Hosts, func(a, b GitHost) int { return cmp.Compare(a.Host, b.Host) })
	return git
}

func buildPatterns(items []shape.Value) []Pattern {
	var patterns []Pattern
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		if !seen[item.Text] {
			seen[item.Text] = true
			patterns = append(patterns, Pattern{Glob: item.Text, Origin: origin(item.Place)})
		}
	}
	return patterns
}

func buildLimits(v shape.Value) Limits {
	tasks, _ := strconv.Atoi(v.Get("tasks").Text) // unsaid: 0
	return Limits{
		Memory: amount(v.Get("memory").Text, units), Tasks: tasks,
		CPU: int(amount(v.Get("cpu").Text, map[byte]int64{'%': 1})),
	}
}

// numbers are the ports of a list, sorted, each once.
func numbers(v shape.Value) []int {
	var list []int
	for _, item := range v.Items {
		number, err := strconv.Atoi(item.Text)
		if err != nil {
			panic(fmt.Sprintf("bug: %s passed for a number", item.Text))
		}
		list = append(list, number)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
