package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/agent"
	"claudebox/internal/agent/state"
	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/nix/devshell"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/workspace/branch"
	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/project"
)

// inputs is all that the parts of a launch are made from: the call, its plan, and what is found on the host.
type inputs struct {
	call
	planned
	etc          host.Etc
	policy       agent.Policy
	userGit      userGit
	placesByLink []string // see the function of that name
	home         homelink.Found
	project      project.Project
	branch       *branch.Branch     // nil: the agent works in the user's folder
	gateways     map[string]gateway // by variable
	settingsLeft []string           // variables that the user's settings of Claude Code set, and that do not enter
	asked        []launch.Mount     // on a branch: what hides what the profile's `hide` names
	secrets      secrets
	Instance     state.Instance
	inside       *view.View // see [viewOf]; nil: not known yet
}

// look finds the inputs of a launch by a plan. It changes nothing.
func look(c call, planned planned, home homelink.Found) (in inputs, err error) {
	in = inputs{
		call: c, planned: planned, etc: host.ReadEtc(c.Facts.Env), policy: agent.ReadPolicy(),
		userGit: readUserGit(c), placesByLink: placesByLink(c), home: home,
	}
	in.Facts.Env, in.settingsLeft = withSettings(c, planned.plan)
	in.etc.Certificates = cmp.Or(in.etc.Certificates, in.tools[resolve.ToolCacert])
	if in.project, err = openProject(in); err != nil {
		return in, err
	}
	if err = lookAtBranch(&in); err != nil {
		return in, err
	}
	if err = judgeConfig(c, in.project.Path); err != nil {
		return in, err
	}
	if len(c.why.Command) == 0 { // a fault is told by [agentOf]
		name, command := planned.plan.Agent.Name, planned.plan.Agent.Command
		if profile.IsAdapter(command) {
			name, command = "claude", nil // what it starts says it
		}
		program, _ := findAgent(in, name, command)
		in.Facts.Env = withEntries(in.Facts.Env, planned.plan, program.Env)
	}
	in.gateways = findGateways(in)
	if in.secrets, err = findSecrets(in); err != nil {
		return in, err
	}
	in.Instance, err = lookAtState(in)
	return in, err
}

// part is what one subject, such as git or Nix, adds to a launch.
type part struct{ launch.Part }

func (p *part) mount(list ...launch.Mount) { p.Mounts = append(p.Mounts, list...) }
func (p *part) note(texts ...string)       { p.Notes = append(p.Notes, texts...) }
func (p *part) warn(texts ...string)       { p.Warnings = append(p.Warnings, texts...) }
func (p *part) leave(kind, text string) {
	p.Left = append(p.Left, diag.Left{Kind: kind, Text: text})
}

// leaveAll leaves out several of a kind, by their names. text has ALL for them, and FIRST for the first.
func (p *part) leaveAll(kind, text string, names []string) {
	if len(names) > 0 {
		text = strings.NewReplacer("ALL", diag.Visible(strings.Join(names, ", ")), "FIRST", names[0]).Replace(text)
		p.Left = append(p.Left, diag.Left{Kind: kind, Text: text, Also: len(names) - 1})
	}
}

// leaveRed leaves out what a commit's content, or the way of a secret, depends on.
func (p *part) leaveRed(kind, text string) {
	p.Left = append(p.Left, diag.Left{Kind: kind, Text: text, Red: true})
}

// set gives the sandbox a variable; why is the rule behind it.
func (p *part) set(name, value, why string) {
	entry := plan.Env{Name: name, From: plan.FromMade, Why: why}
	p.Made = append(p.Made, launch.Variable{Env: entry, Value: value})
}

// listOutside lists a secret as one that the agent uses and that stays outside.
func (p *part) listOutside(name string, hosts []string, why string) {
	p.Outside = append(p.Outside, launch.Outside{Name: name, Hosts: hosts, Why: why})
}

// add appends all that other parts add, in their order.
func (p *part) add(others ...part) {
	for _, o := range others {
		p.mount(o.Mounts...)
		p.note(o.Notes...)
		p.warn(o.Warnings...)
		p.Left = append(p.Left, o.Left...)
		p.Made, p.Outside = append(p.Made, o.Made...), append(p.Outside, o.Outside...)
		for _, s := range o.StandIns {
			if !slices.Contains(p.StandIns, s) { // parts may share a stand-in
				p.StandIns = append(p.StandIns, s)
			}
		}
	}
}

// parts are the parts of a launch, one for each subject.
type parts struct {
	extra    part // see [judgeExtraEnv]
	network  networkPart
	agent    agentPart
	git      gitPart
	nix      nixPart
	devshell devshellPart
	asking   part // see [askingOf]
	mounts   part // of the project and of flags, see [mountsOf]
	home     part
	limits   part
	remarks  part
	brokered brokeredPart
	limited  bool              // systemd enforces the limits
	linked   map[string]string // which of mounts were reached by a link, see [bound]
	inside   *view.View
	instance state.Instance // with the files of the agent's home
}

// gather makes all parts of a launch. port is the port of the broker's proxy, see [listen].
func gather(in inputs, k *keeper, port int) (p parts, err error) {
	if p.extra, err = judgeExtraEnv(in.Facts.Env); err != nil {
		return p, err
	}
	if p.network, err = networkOf(in); err != nil {
		return p, err
	}
	if p.agent, err = agentOf(in, k); err != nil {
		return p, err
	}
	if p.nix, err = nixOf(in); err != nil {
		return p, err
	}
	if p.devshell, err = devshellOf(in, p.nix, p.agent); err != nil {
		return p, err
	}
	if p.asking, err = askingOf(in); err != nil {
		return p, err
	}
	if p.mounts, p.linked, err = mountsOf(in); err != nil {
		return p, err
	}
	var links []link
	if p.home, links, err = homeOf(in); err != nil {
		return p, err
	}
	if in.inside, err = viewOf(in, p); err != nil {
		return p, err
	}
	if linked := linkedOf(in, links); len(linked.Mounts)+len(linked.Left) > 0 {
		p.home.add(linked)
		if in.inside, err = viewOf(in, p); err != nil {
			return p, err
		}
	}
	p.inside = in.inside
	if p.git, err = gitOf(in); err != nil {
		return p, err
	}
	var said part
	if p.instance, said, err = furnish(in); err != nil {
		return p, err
	}
	p.home.add(said)
	p.limits, p.limited = limitsOf(in)
	var overrides map[string]launch.Override
	p.remarks, overrides = remarksOf(in)
	p.brokered, err = brokeredOf(in, overrides, port)
	return p, err
}

// viewOf says what is inside, once all parts are made that bring programs and files of the host there.
func viewOf(in inputs, p parts) (*view.View, error) {
	mounts, err := launch.Mounts(in.plan, hostOf(in, p), func(path string) (string, error) {
		at, _, err := follow(in, path)
		return at, err
	})
	if err != nil {
		return nil, err
	}
	v := view.Of(mounts, slices.Concat(in.plan.Pins.Closure, p.agent.Closure))
	v.Path, v.Home, v.Project, v.Dir = in.plan.Path, in.Facts.Home, in.project.Path, in.project.Dir
	if p.devshell.stage != nil {
		record, known := devshell.Look(p.devshell.state, p.devshell.folder)
		v.Brings = func(program string) bool { // what it has is not known before it was made once
			return !known || record.Failed == "" && slices.Contains(record.Programs, program)
		}
	}
	for _, of := range in.Instance.Imports { // their links may not be made yet
		v.Link(of.Link(in.Facts.Home), of.Destination)
	}
	return v, nil
}

// bound is a launch, with what must be known of its mounts while it runs.
type bound struct {
	Launch launch.Launch
	given  []given           // folders that the agent may change: the project first
	linked map[string]string // source of a mount → the link by which it was reached, which an agent could have made
}

// bind makes the launch of all parts. It returns an error if the agent would reach by the launch what is protected.
func bind(in inputs, p parts) (b bound, err error) {
	b.linked = maps.Clone(p.linked)
	h := hostOf(in, p)
	h.Mounts, err = launch.Mounts(in.plan, h, func(path string) (string, error) {
		at, link, err := follow(in, path)
		if link != "" {
			b.linked[at] = link
		}
		return at, err
	})
	if err != nil {
		return b, err
	}
	if err := cmp.Or(putBranch(in, h.Mounts), judgeWritable(in, h.Mounts)); err != nil {
		return b, err
	}
	guarded, err := guardGiven(in, h.Mounts)
	if err != nil {
		return b, err
	}
	b.given = guarded.given
	if err := cmp.Or(judgeSearchPlaces(in.placesByLink, b.given), judgeHomeSecrets(in, h.Mounts)); err != nil {
		return b, err
	}
	all := part{h.Part}
	all.add(guarded.part)
	h.Part = all.Part
	if b.Launch, err = launch.Bind(in.plan, h); err != nil {
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
	return b, cmp.Or(judgeSecretFiles(in, b.Launch.Mounts), judgeSources(in, b.Launch.Mounts, b.given))
}

// manyMounts is how many mounts bwrap may make before the user is told that they delay the start: 200 take 40 ms.
const manyMounts = 150

// hostOf returns the host as a launch sees it, with the mounts of all parts. Those of the plan are not among them yet.
func hostOf(in inputs, p parts) launch.Host {
	var all part
	all.add(p.extra, p.network.part, p.agent.part, p.git.part, p.nix.part, p.devshell.part, p.asking, p.mounts,
		branchPart(in), p.home, p.limits, p.remarks, p.brokered.part)
	return launch.Host{
		Setting: launch.Setting{
			Bwrap: in.tools[resolve.ToolBwrap], Env: in.tools[resolve.ToolEnv], Bash: in.tools[resolve.ToolBash],
			Shim:    plan.ToolPath(in.plan, resolve.ToolEnv),
			Project: in.project.Path, Branch: in.options.Branch, Undone: in.undone(),
			Dir: in.project.Dir, State: in.Instance.Dir,
			Agent: p.agent.Agent, Devshell: p.devshell.stage, Request: in.options.Words,
			Limited: p.limited, Seccomp: seccomp.Filter(),
		},
		Part: all.Part, Nix: p.nix.Nix, Facts: in.Facts, Etc: in.etc,
		Gitconfig: p.git.config, Policy: in.policy.Text, ExtraEnv: extraEnv(in.Facts.Env), Bundle: p.brokered.bundle,
		Overrides: p.brokered.overrides, CanLay: launch.CanLay(),
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
		if link := b.linked[m.Source]; link != "" && userNamed(m) {
			list = append(list, LinkedMount{m, link})
		}
	}
	return list
}

// given is a folder that the agent may change: the project, or one that is
// mounted read-write beside it. The host's git obeys what is in such a folder, so
// each is guarded as the project is.
type given struct {
	project.Project
	at string // where it lies inside
}

// inside returns where a path of the folder lies in the sandbox.
func (f given) inside(path string) string { return f.at + strings.TrimPrefix(path, f.Path) }

// moved reports whether the folder lies at another path inside than on the host.
func (f given) moved() bool { return f.at != f.Path }
