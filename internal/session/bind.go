package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"claudebox/internal/agent/state"
	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/workspace/project"
)

// ground is what is known before a launch is made of it: all that its parts are made from.
type ground struct {
	call
	planned
	etc      host.Etc
	userGit  userGit
	led      []string // see [ledElsewhere]
	project  project.Project
	secrets  secrets
	Instance state.Instance
}

// look finds all that the parts of a launch need to know, for a plan. It changes nothing.
func look(c call, planned planned) (g ground, err error) {
	g = ground{call: c, planned: planned, etc: host.ReadEtc(c.Facts.Env), userGit: readUserGit(c), led: ledElsewhere(c)}
	g.etc.Certificates = cmp.Or(g.etc.Certificates, plan.ToolPath(g.plan, resolve.ToolCacert))
	if g.project, err = openProject(g); err != nil {
		return g, err
	}
	if g.secrets, err = findSecrets(g); err != nil {
		return g, err
	}
	g.Instance, err = lookAtState(g)
	return g, err
}

// part is what one subject adds to a launch.
type part struct{ launch.Part }

func (p *part) mount(list ...launch.Mount) { p.Mounts = append(p.Mounts, list...) }
func (p *part) note(texts ...string)       { p.Notes = append(p.Notes, texts...) }
func (p *part) warn(texts ...string)       { p.Warnings = append(p.Warnings, texts...) }

// set gives the sandbox a variable.
func (p *part) set(name, value, why string) {
	entry := plan.Env{Name: name, From: plan.FromMade, Why: why}
	p.Made = append(p.Made, launch.Variable{Env: entry, Value: value})
}

// stays records that the agent uses a secret, which stays outside.
func (p *part) stays(name string, hosts []string, why string) {
	p.Outside = append(p.Outside, launch.Outside{Name: name, Hosts: hosts, Why: why})
}

// add appends all that other parts add, in their order.
func (p *part) add(others ...part) {
	for _, o := range others {
		p.mount(o.Mounts...)
		p.note(o.Notes...)
		p.warn(o.Warnings...)
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
	machine  part
	network  networkPart
	agent    agentPart
	git      gitPart
	nix      nixPart
	named    part
	home     part
	limits   part
	remarks  part
	brokered brokeredPart
	ownPIDs  bool              // see [launch.CanOwnPIDs]
	held     bool              // systemd enforces the limits
	linked   map[string]string // of named, see [bound]
}

// gather makes all parts. port is that of the broker's proxy, see [listen].
func gather(g ground, k *keeper, port int) (p parts, err error) {
	if p.machine, p.ownPIDs, err = machineOf(g.Facts.Env); err != nil {
		return p, err
	}
	if p.network, err = networkOf(g); err != nil {
		return p, err
	}
	if p.agent, err = agentOf(g, k); err != nil {
		return p, err
	}
	if p.git, err = gitOf(g); err != nil {
		return p, err
	}
	if p.nix, err = nixOf(g, p.ownPIDs); err != nil {
		return p, err
	}
	if p.named, p.linked, err = namedOf(g); err != nil {
		return p, err
	}
	if p.home, err = homeOf(g); err != nil {
		return p, err
	}
	p.limits, p.held = limitsOf(g, p.ownPIDs)
	var overrides map[string]launch.Override
	p.remarks, overrides = remarksOf(g)
	p.brokered, err = brokeredOf(g, overrides, port)
	return p, err
}

// bound is the launch, with what is known of its mounts.
type bound struct {
	Launch launch.Launch
	given  []given           // what the agent may change: the project first
	linked map[string]string // sources of mounts that were reached by a link which an agent could have made
}

// bind makes the launch of all parts, and refuses one by which the agent would reach what is protected.
func bind(g ground, p parts) (b bound, err error) {
	b.linked = maps.Clone(p.linked)
	h := hostOf(g, p)
	h.Mounts, err = launch.Mounts(g.plan, h, func(path string) (string, error) {
		at, link, err := follow(g, path)
		if link != "" {
			b.linked[at] = link
		}
		return at, err
	})
	if err != nil {
		return b, err
	}
	if err := judgeWritable(g, h.Mounts); err != nil {
		return b, err
	}
	guarded, err := guard(g, h.Mounts)
	if err != nil {
		return b, err
	}
	b.given = guarded.given
	if err := judgeSearchPlaces(g.led, b.given); err != nil {
		return b, err
	}
	all := part{h.Part}
	all.add(guarded.part)
	h.Part = all.Part
	if b.Launch, err = launch.Bind(g.plan, h); err != nil {
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
	return b, cmp.Or(judgeSecretFiles(g, b.Launch.Mounts), judgeSources(g, b.Launch.Mounts, b.given))
}

// manyMounts is how many mounts cost so much that a person notices: 200 take 40 ms.
const manyMounts = 150

// hostOf is the host as a launch sees it, but for the mounts of its plan.
func hostOf(g ground, p parts) launch.Host {
	var all part
	all.add(p.machine, p.network.part, p.agent.part, p.git.part, p.nix.part, p.named, p.home,
		p.limits, p.remarks, p.brokered.part)
	return launch.Host{
		Setting: launch.Setting{
			Bwrap: plan.ToolPath(g.plan, resolve.ToolBwrap), Shim: plan.ToolPath(g.plan, resolve.ToolEnv),
			Project: g.project.Path, Dir: g.project.Dir, State: g.Instance.Dir,
			Agent: p.agent.Agent, Request: g.options.Words,
			Held: p.held, OwnPIDs: p.ownPIDs, Seccomp: seccomp.Filter(),
		},
		Part: all.Part, Nix: p.nix.Nix, Facts: g.Facts, Etc: g.etc,
		Gitconfig: p.git.config, ExtraEnv: extraEnv(g.Facts.Env), Bundle: p.brokered.bundle,
		Overrides: p.brokered.overrides, CanLay: launch.CanLay(), Heeded: g.heeded,
	}
}

// machineOf notes what this machine cannot do, and which extra variables the environment does not have. ownPIDs is
// [launch.CanOwnPIDs].
func machineOf(env host.Environment) (made part, ownPIDs bool, err error) {
	made.Notes, err = judgeExtraEnv(env)
	if ownPIDs = launch.CanOwnPIDs(); !ownPIDs {
		made.note("process 2 is not seen in /proc here: a `kill -9` of claudebox while the sandbox is set up could " +
			"leave it running")
	}
	return made, ownPIDs, err
}

// LinkedMount is a mount whose source was reached by a link that an agent could
// have made. A user who has not approved of it must be asked.
type LinkedMount struct {
	launch.Mount
	Link string
}

// Linked are the linked mounts of the session.
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
// mounted read-write beside it. The host's git obeys what is in there, so each is
// guarded.
type given struct {
	project.Project
	at string // where it lies inside
}

// inside is where a path of the folder lies in the sandbox.
func (f given) inside(path string) string { return f.at + strings.TrimPrefix(path, f.Path) }

// moved reports whether the folder lies at another path inside than out here.
func (f given) moved() bool { return f.at != f.Path }
