package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/secret/leak"
)

// Build makes the plan of a valid profile, with its packages as resolved. It is a
// pure function: equal arguments give plans with equal bytes. It returns an error if
// two mounts have one destination.
func Build(prof profile.Profile, res resolve.Resolution) (Plan, error) {
	p := Plan{
		Version: Version,
		Profile: prof.Name,
		Sources: mapped(prof.Sources, func(s profile.Source) Source { return Source{Name: s.Name, SHA256: s.SHA256} }),
		System:  res.System,
		Pins:    Pins{Nixpkgs: res.Nixpkgs, Packages: res.Packages, Closure: res.Closure},
		Path:    searchPath(res.Packages),
		Network: network(prof),
		Limits:  prof.Limits,
		State:   prof.State,
		Cache:   prof.Cache,
		Project: prof.Project, Workspace: workspace(prof),
		Nix:      prof.Nix,
		Devshell: prof.Devshell,
		Git:      git(prof),
		Hide:     globs(prof.Hide),
		Show:     globs(prof.Show),
		Protect:  Protect{Mode: prof.ProtectMode, Globs: globs(prof.Protect)},
		Agent: Agent{
			Name: prof.Agent.Name, Command: prof.Agent.Command, Args: argsOf(prof.Agent), Home: keptFolders(prof.Agent),
		},
		MCP:       prof.MCP,
		Worktrees: globs(prof.Worktrees),
		Compat:    prof.Compat,
		Confirm:   prof.Confirm,
	}
	for _, name := range slices.Sorted(maps.Keys(res.Tools)) {
		p.Pins.Tools = append(p.Pins.Tools, Tool{Name: name, Path: res.Tools[name]})
	}
	for _, s := range prof.Secrets {
		if !s.Inside {
			p.Secrets = append(p.Secrets, Secret{
				Variable: s.Variable, File: s.File, Hosts: s.Hosts, As: s.As, Header: s.Header, Write: s.Write,
				Why: s.Origin.Rule(),
			})
		}
	}
	p.Env = environment(prof, res)
	p.Mounts = mounts(prof, res)
	if err := checkMounts(p.Mounts); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// searchPath returns the folders of PATH inside: the bin folder of each output that
// can contain programs, without duplicates, in the packages' order.
func searchPath(packages []Package) []string {
	var path []string
	for _, pkg := range packages {
		for _, output := range pkg.Outputs {
			dir := output.Path + "/bin"
			if !slices.Contains(noPrograms, output.Name) && !slices.Contains(path, dir) {
				path = append(path, dir)
			}
		}
	}
	return path
}

// noPrograms are the names of outputs that by nixpkgs' convention contain no
// programs but documentation, headers or libraries (multiple-outputs.sh).
var noPrograms = []string{"dev", "lib", "doc", "man", "info", "devdoc", "debug", "static"}

func network(prof profile.Profile) Network {
	n := prof.Network
	n.Allow, n.Except, n.Private = allowed(prof.Agent.Name, n), ordered(n.Except), ordered(n.Private)
	return n
}

func ordered[T cmp.Ordered](list []T) []T { return slices.Sorted(slices.Values(list)) }

func git(prof profile.Profile) Git {
	hosts := mapped(prof.Git.Hosts, func(h profile.GitHost) GitHost {
		return GitHost{Host: h.Host, Variable: h.Variable}
	})
	made := Git{Hosts: hosts, SSHToHTTPS: prof.Git.SSHToHTTPS, Config: prof.Git.Config, SSH: prof.SSHHosts}
	if prof.Git.Sign == profile.GitSignSSH {
		made.Sign = prof.Git.Sign
	}
	return made
}

// ForGit is the suffix of [Env.Why] for a variable that is passed only because git.hosts names it.
const ForGit = ", git.hosts"

func globs(patterns []profile.Entry) []string {
	return slices.Compact(ordered(mapped(patterns, func(p profile.Entry) string { return p.Text })))
}

func environment(prof profile.Profile, res resolve.Resolution) []Env {
	vars := map[string]Env{}
	add := func(e Env, from EnvFrom, rule string) {
		e.From, e.Why = from, rule
		vars[e.Name] = e
	}
	agent, known := agents[prof.Agent.Name]
	if !known {
		agent = agents["claude"] // an unknown agent gets the key of the default one
	}
	for _, name := range hostVariables {
		add(Env{Name: name}, FromHost, Base)
	}
	for _, name := range agent.variables {
		add(Env{Name: name}, FromHost, Base)
	}
	for _, key := range agent.keys {
		add(Env{Name: key, Secret: true}, FromHost, Base)
	}
	for _, h := range slices.Concat(prof.PassThrough, prof.Agent.Env) {
		if e, known := vars[h.Text]; !known || e.Why == Base && !e.Secret {
			add(Env{Name: h.Text, Secret: leak.Name(h.Text) != ""}, FromHost, h.Origin.Rule())
		}
	}
	for _, s := range prof.Secrets {
		if s.Inside {
			add(Env{Name: s.Variable, Secret: true, Inside: true}, FromHost, s.Origin.Rule())
		}
	}
	for _, h := range prof.Git.Hosts {
		if _, known := vars[h.Variable]; !known &&
			!slices.ContainsFunc(prof.Secrets, func(s profile.Secret) bool { return s.Variable == h.Variable }) {
			add(Env{Name: h.Variable, Secret: true}, FromHost, h.Origin.Rule()+ForGit)
		}
	}
	for _, e := range agent.env {
		add(e, FromMade, Base)
	}
	for _, c := range prof.Env {
		add(Env{Name: c.Name, Value: c.Value, Secret: leak.Variable(c.Name, c.Value) != ""}, FromConst, c.Origin.Rule())
	}
	for _, e := range made(prof, res) {
		add(e, FromMade, Base)
	}
	return slices.SortedFunc(maps.Values(vars), func(a, b Env) int { return cmp.Compare(a.Name, b.Name) })
}

func made(prof profile.Profile, res resolve.Resolution) []Env {
	list := slices.Clone(madeVariables)
	list = append(list, Env{Name: "PATH", Value: strings.Join(searchPath(res.Packages), ":")})
	for _, v := range toolVariables {
		if tool, ok := res.Tools[v.tool]; ok {
			list = append(list, Env{Name: v.name, Value: tool})
		}
	}
	if res.Nixpkgs.Path != "" {
		list = append(list, Env{Name: "NIX_PATH", Value: "nixpkgs=" + res.Nixpkgs.Path})
	}
	if prof.Nix.Daemon == profile.DaemonHost {
		list = append(list, Env{Name: "NIX_REMOTE", Value: "daemon"})
	}
	// nix-ld reads from these variables where the real loader and the libraries are.
	loader, libs := res.Tools[resolve.ToolLoader], res.Tools[resolve.ToolLibs]
	if prof.Compat == profile.CompatNixLd && loader != "" && libs != "" {
		list = append(list,
			Env{Name: "NIX_LD", Value: libs + "/ld.so"}, Env{Name: "NIX_LD_LIBRARY_PATH", Value: libs})
	}
	return list
}

func mapped[A, B any](list []A, f func(A) B) []B {
	if len(list) == 0 {
		return nil
	}
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// WithTier returns the plan with another network tier, as `--network` asks for.
func (p Plan) WithTier(tier string) Plan {
	p.Network = p.Network.Under(tier)
	p.Network.Allow = allowed(p.Agent.Name, p.Network)
	p.Mounts = slices.DeleteFunc(slices.Clone(p.Mounts), func(m Mount) bool {
		return m.Kind == File && m.Source == string(MadeResolv)
	})
	if tier == profile.TierNone {
		p.Network.Out = nil // tier none reaches no service of the host, and no resolver
	} else {
		p.Mounts = append(p.Mounts, based(networkMounts)...)
		SortMounts(p.Mounts)
	}
	return p
}

// WithPorts returns the plan with more ports of the host that lead inside, as
// `--publish` asks for.
func (p Plan) WithPorts(in ...int) Plan {
	p.Network.In = slices.Compact(ordered(slices.Concat(p.Network.In, in)))
	return p
}

// workspace is where the agent works; empty: in the project.
func workspace(prof profile.Profile) string {
	if prof.Workspace == profile.WorkspaceBranch {
		return profile.WorkspaceBranch
	}
	return ""
}
