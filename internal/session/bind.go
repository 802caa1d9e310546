package session

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"claudebox/internal/agent"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/session/agentstate"
	"claudebox/internal/session/asking"
	"claudebox/internal/session/brokering"
	"claudebox/internal/session/folders"
	"claudebox/internal/session/gituse"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/homelinks"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/limits"
	"claudebox/internal/session/networking"
	"claudebox/internal/session/nixuse"
	"claudebox/internal/session/planning"
	"claudebox/internal/session/program"
	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/project"
)

// inputs is all that the parts of a launch are made from: the call, its plan, and what is found on the host.
type inputs struct {
	around
	tree
	settingsLeft []string // variables that the user's settings of Claude Code set, and that do not enter
	secrets      brokering.Secrets
	found        state.Instance // as it was found; [parts] has it furnished
	walks        lending.Walks
}

// around is what a launch reads of this host by its call alone, and then its plan.
type around struct {
	folders.Host
	etc    host.Etc
	policy agent.Policy
}

// lookAround begins to read what is around a call, and returns what waits for it.
func lookAround(c planning.Call) (wait func() around) {
	wait = sync.OnceValue(func() around {
		return around{folders.HostOf(c, planning.Planned{}), host.ReadEtc(c.Facts.Env), agent.ReadPolicy()}
	})
	go wait()
	return wait
}

// look finds the inputs of a launch by a plan. It changes nothing.
func look(found around, planned planning.Planned, home homelink.Found, walks lending.Walks) (in inputs, err error) {
	in = inputs{around: found, walks: walks}
	in.Planned, in.Links = planned, home
	in.Facts.Env, in.settingsLeft = program.WithSettings(in.Facts, planned.Plan)
	in.etc.Certificates = cmp.Or(in.etc.Certificates, in.Tools[resolve.ToolCacert])
	if in.tree, err = treeOf(in.Host); err != nil {
		return in, err
	}
	if err = program.JudgeConfig(in.Facts, in.project.Path); err != nil {
		return in, err
	}
	if len(in.Purpose.Command) == 0 { // a fault is told by [program.Of]
		name, command := planned.Plan.Agent.Name, planned.Plan.Agent.Command
		if profile.IsAdapter(command) {
			name, command = "claude", nil // what it starts says it
		}
		found, _ := in.program().Find(name, command)
		in.Facts.Env = program.WithEntries(in.Facts.Env, planned.Plan, found.Env)
	}
	if in.secrets, err = brokering.Find(secretsOf(in.Host, in.project.InstanceRoot, in.etc)); err != nil {
		return in, err
	}
	in.found, err = in.agentState().Look()
	return in, err
}

// program is what decides on the program that runs inside.
func (in *inputs) program() program.Request {
	return program.Request{
		Call: in.Call, Plan: in.Plan, Project: in.project, Branch: in.branchName(),
		Policy: in.policy.Files, Has: in.has,
	}
}

// agentState is what decides on the agent's home.
func (in *inputs) agentState() agentstate.Request {
	return agentstate.Request{Call: in.Call, Plan: in.Plan, Project: in.project, Secrets: in.secrets}
}

// lending is this host as what the user lends is judged by.
func (in *inputs) lending() lending.Host {
	h := lending.Host{
		Facts: in.Facts, Project: in.project.Path, Config: program.ConfigFolder(in.Facts), Own: in.Folders.Home,
		Instance: in.found.Dir, Imports: in.found.Imports, Show: in.Plan.Show,
		Places: profile.PlacesOf(in.Facts.Home, in.Facts.Env.Value, beneath.Real),
		Cache:  lentCache(in.Call), Build: in.Build, Walks: in.walks, Kept: in.SecretFiles(),
	}
	if in.branch != nil {
		h.Branch = in.branch.Dir
	}
	return h
}

// keptBy says where claudebox keeps what belongs to the folders that the agent may change.
func keptBy(h folders.Host, found state.Instance) guarded.Places {
	return guarded.Places{
		Own: h.Folders.Home, Instance: found.Dir, Rehearsed: pathname.Below(h.Folders.Home, h.Folders.Cache),
	}
}

// lentCache is the folder of what is kept of lent folders.
func lentCache(c planning.Call) string { return c.Folders.Cache + "/lent" }

// projectsOf are given folders, as they were opened.
func projectsOf(list []guarded.Folder) (opened []project.Project) {
	for _, folder := range list {
		opened = append(opened, folder.Project)
	}
	return opened
}

// secretsOf is what decides on the secrets.
func secretsOf(h folders.Host, instanceRoot string, etc host.Etc) brokering.Request {
	return brokering.Request{
		Plan: h.Plan, Facts: h.Facts, Home: h.Folders.Home, InstanceRoot: instanceRoot,
		Extra: program.ExtraEnv(h.Facts.Env), ExtraWhy: program.ExtraVariable,
		Certificates: etc.Certificates, Authorities: etc.Authorities, Look: h.Purpose.Look,
	}
}

// parts are the parts of a launch, one for each subject.
type parts struct {
	extra    launch.Part // see [program.JudgeExtraEnv]
	network  networking.Part
	agent    program.Part
	git      gituse.Part
	nix      nixuse.Part
	devshell program.DevshellPart
	asking   launch.Part // see [asking.Of]
	mounts   launch.Part // of the project and of flags, see [mountsOf]
	home     agentstate.Entering
	files    agentstate.Furnished // of the agent's home
	limits   launch.Part
	remarks  launch.Part
	brokered brokering.Part
	limited  bool              // systemd enforces the limits
	linked   map[string]string // which of mounts were reached by a link, see [bound]
	inside   *view.View        // see [viewOf]
}

// beside begins to make a value, and returns what waits for it.
func beside[T any](begin func() (T, error)) (wait func() (T, error)) {
	wait = sync.OnceValues(begin)
	go wait()
	return wait
}

// gather makes all parts of a launch. port is the port of the broker's proxy, see [brokering.Secrets.Listen]. What
// takes long where the user's own set-up is large is made beside the rest.
func gather(in *inputs, k *planning.Keeper, port int) (p parts, err error) {
	home := beside(func() (agentstate.Entering, error) { return in.agentState().Mounts(in.found, in.lending()) })
	if p.extra, err = program.JudgeExtraEnv(in.Facts.Env); err != nil {
		return p, err
	}
	p.network, err = networking.Of(networking.Request{
		Plan: in.Plan, Facts: in.Facts, Project: in.project.Path,
		Publish: in.Options.Publish, Log: in.Options.NetworkLog,
	})
	if err != nil {
		return p, err
	}
	if p.agent, err = program.Of(in.program(), k); err != nil {
		return p, err
	}
	p.nix, err = nixuse.Of(nixuse.Request{
		Plan: in.Plan, Tools: in.Tools, Host: in.etc.NixConf, Home: in.Facts.Home, Folders: in.Folders,
		Instance: in.found.Dir, Look: in.Purpose.Look || in.Purpose.Dry,
	})
	if err != nil {
		return p, err
	}
	if p.devshell, err = program.Devshell(in.program(), p.nix, p.agent); err != nil {
		return p, err
	}
	if p.asking, err = asking.Of(in.found.Dir, in.Plan.Path, in.Purpose.Look); err != nil {
		return p, err
	}
	if p.mounts, p.linked, err = mountsOf(in); err != nil {
		return p, err
	}
	if p.home, err = home(); err != nil {
		return p, err
	}
	if p.inside, err = viewOf(in, &p); err != nil {
		return p, err
	}
	if linked := in.lending().Linked(p.home.Links, p.inside); len(linked.Mounts)+len(linked.Left) > 0 {
		p.home.Add(linked)
		if p.inside, err = viewOf(in, &p); err != nil {
			return p, err
		}
	}
	again, forGit := p.inside.Again(), p.inside.Again()
	files := beside(func() (agentstate.Furnished, error) { return in.agentState().Furnish(in.found, again) })
	git := beside(func() (gituse.Part, error) { return gitOf(in.Host, in.agentState(), in.lending(), forGit) })
	p.limits, p.limited = limits.Of(in.Plan.Limits, in.Facts.Env)
	var overrides map[string]launch.Override
	p.remarks, overrides = remarksOf(in, p.agent.Agent, p.inside)
	if p.git, err = git(); err != nil {
		return p, err
	}
	if p.brokered, err = in.secrets.Part(in.found.Login, overrides, port); err == nil {
		p.files, err = files()
	}
	return p, err
}

// viewOf says what is inside, once all parts are made that bring programs and files of the host there.
func viewOf(in *inputs, p *parts) (*view.View, error) {
	mounts, err := launch.Mounts(in.Plan, hostOf(in, p), func(path string) (string, error) {
		at, _, err := in.lending().Follow(path)
		return at, err
	})
	if err != nil {
		return nil, err
	}
	v := view.Of(launch.WithoutLinksAbove(in.Facts.Home, mounts), slices.Concat(in.Plan.Pins.Closure, p.agent.Closure))
	v.Path, v.Home, v.Project, v.Dir = in.Plan.Path, in.Facts.Home, in.project.Path, in.project.Dir
	v.Mountable = func(name string) (flag string, fault error) {
		switch over := v.Over(name); { // nothing can be mounted in it
		case over != nil && over.Hides():
			rel, _ := pathname.Cut(over.Destination, v.Project)
			return "", fmt.Errorf("`show: [%q]` in the profile shows it", profile.ExactGlob(rel))
		case over != nil && over.Source != over.Destination:
			return "", errors.New("the agent has one of its own in the place of " + diag.Name(over.Destination))
		}
		return in.lending().Mountable(name)
	}
	v.Yours = func(program, search string) string {
		return yours(program, cmp.Or(search, in.Facts.Env.Value("PATH", "")), v)
	}
	if p.devshell.Stage != nil {
		record, known := p.devshell.Look()
		v.Brings = func(program string) bool { // what it has is not known before it was made once
			return !known || record.Failed == "" && slices.Contains(record.Programs, program)
		}
	}
	for _, of := range in.found.Imports { // their links may not be made yet
		if of.At != "" {
			v.Link(of.Link(in.Facts.Home), of.Destination)
		}
	}
	return v, nil
}

// bound is a launch, with what must be known of its mounts while it runs.
type bound struct {
	Launch launch.Launch
	given  []guarded.Folder  // folders that the agent may change: the project first
	linked map[string]string // source of a mount → the link by which it was reached, which an agent could have made
}

// bind makes the launch of all parts. It returns an error if the agent would reach by the launch what is protected.
func bind(in *inputs, p *parts) (b bound, err error) {
	b.linked = maps.Clone(p.linked)
	h := hostOf(in, p)
	h.Mounts, err = launch.Mounts(in.Plan, h, func(path string) (string, error) {
		at, link, err := in.lending().Follow(path)
		if link != "" {
			b.linked[at] = link
		}
		return at, err
	})
	if err != nil {
		return b, err
	}
	if err := cmp.Or(in.tree.put(h.Mounts), in.Host.JudgeWritable(h.Mounts)); err != nil {
		return b, err
	}
	guarding := folders.Giving{
		Host: in.Host, Project: in.project, OnBranch: in.branch != nil, Lending: in.lending(),
		Kept: keptBy(in.Host, in.found),
	}
	guarded, err := guarding.Guard(h.Mounts)
	if err != nil {
		return b, err
	}
	b.given = guarded.Given
	err = cmp.Or(in.Host.JudgeSearchPlaces(b.given),
		homelinks.Judge(in.Links, in.Facts.Home, in.project.Path, h.Mounts))
	if err != nil {
		return b, err
	}
	h.Part.Add(guarded.Part)
	if b.Launch, err = launch.Bind(in.Plan, h); err != nil {
		return b, err
	}
	if n := b.Launch.ByBwrap(); n > manyMounts {
		b.Launch.Notes = append(b.Launch.Notes, fmt.Sprintf(
			"%d mounts: the cost of starting grows with their square; mount whole folders", n))
	}
	for _, m := range b.Linked() {
		b.Launch.Warnings = append(b.Launch.Warnings,
			m.Source+" ("+m.Why+") is reached by the link "+m.Link+", which an agent could have made")
	}
	return b, cmp.Or(in.secrets.JudgeFiles(b.Launch.Mounts), in.lending().Judge(b.Launch.Mounts, projectsOf(b.given)))
}

// manyMounts is how many mounts bwrap may make before the user is told that they delay the start: 200 take 40 ms.
const manyMounts = 150

// hostOf returns the host as a launch sees it, with the mounts of all parts. Those of the plan are not among them yet.
func hostOf(in *inputs, p *parts) launch.Host {
	var all launch.Part
	all.Add(p.extra, p.network.Part, p.agent.Part, p.git.Part, p.nix.Part, p.devshell.Part, p.asking, p.mounts,
		in.tree.part(in.Plan, in.Facts.Home), p.home.Part, p.files.Said, p.limits, p.remarks, p.brokered.Part)
	return launch.Host{
		Setting: launch.Setting{
			Bwrap: in.Tools[resolve.ToolBwrap], Env: in.Tools[resolve.ToolEnv], Bash: in.Tools[resolve.ToolBash],
			Shim:    plan.ToolPath(in.Plan, resolve.ToolEnv),
			Project: in.project.Path, Branch: in.branchName(), Undone: in.undone(),
			Dir: in.project.Dir, State: in.found.Dir,
			Agent: p.agent.Agent, Devshell: p.devshell.Stage, Request: in.Options.Words,
			Limited: p.limited, Seccomp: seccomp.Filter(),
		},
		Part: all, Nix: p.nix.Nix, Facts: in.Facts, Etc: in.etc,
		Gitconfig: p.git.Config, Policy: in.policy.Text, ExtraEnv: program.ExtraEnv(in.Facts.Env),
		Bundle: p.brokered.Bundle, Overrides: p.brokered.Overrides, Kept: p.brokered.Kept,
	}
}

// LinkedMount is a mount whose source was reached by a link that an agent could
// have made. A user who has not approved of it must be asked.
type LinkedMount struct {
	launch.Mount
	Link string // path of the link
}

// Linked lists the mounts of the session that a user named and that were reached by a link.
func (b bound) Linked() []LinkedMount {
	var list []LinkedMount
	for _, m := range b.Launch.Mounts {
		if link := b.linked[m.Source]; link != "" && lending.UserNamed(m) {
			list = append(list, LinkedMount{m, link})
		}
	}
	return list
}
