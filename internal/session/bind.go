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

// look finds the ground of a launch by a plan. It changes nothing.
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
type part struct {
	mounts   []launch.Mount
	standIns []launch.StandIn
	made     []launch.Variable
	outside  []launch.Outside
	notes    []string // what a person should know before the start
	warnings []string // the same, in red
}

func (p *part) mount(list ...launch.Mount) { p.mounts = append(p.mounts, list...) }
func (p *part) note(texts ...string)       { p.notes = append(p.notes, texts...) }
func (p *part) warn(texts ...string)       { p.warnings = append(p.warnings, texts...) }

// add adds what other parts add, in their order.
func (p *part) add(others ...part) {
	for _, o := range others {
		p.mount(o.mounts...)
		p.note(o.notes...)
		p.warn(o.warnings...)
		p.standIns, p.made = append(p.standIns, o.standIns...), append(p.made, o.made...)
		p.outside = append(p.outside, o.outside...)
	}
}

// parts are what all subjects make of the ground.
type parts struct {
	machine  machinePart
	network  networkPart
	agent    agentPart
	git      gitPart
	nix      nixPart
	named    part
	home     part
	limits   part
	remarks  remarksPart
	brokered brokeredPart
	held     bool              // the limits are, by systemd
	linked   map[string]string // of named, see [bound]
}

// gather makes the parts. port is that of the broker's proxy.
func gather(g ground, k *keeper, port int) (p parts, err error) {
	if p.machine, err = machineOf(g.Facts.Env); err != nil {
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
	if p.nix, err = nixOf(g, p.machine.ownPIDs); err != nil {
		return p, err
	}
	if p.named, p.linked, err = namedOf(g); err != nil {
		return p, err
	}
	if p.home, err = homeOf(g); err != nil {
		return p, err
	}
	p.limits, p.held = limitsOf(g, p.machine.ownPIDs)
	p.remarks = remarksOf(g)
	p.brokered, err = brokeredOf(g, p.remarks.overrides, port)
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
	h.Mounts = append(h.Mounts, guarded.mounts...)
	for _, p := range guarded.standIns {
		if !slices.Contains(h.StandIns, p) { // one stands in for folders of all
			h.StandIns = append(h.StandIns, p)
		}
	}
	h.Notes, h.Warnings = append(h.Notes, guarded.notes...), append(h.Warnings, guarded.warnings...)
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

// manyMounts is where mounts begin to cost what a person feels: 200 take 40 ms.
const manyMounts = 150

// hostOf is the host as a launch sees it, but for the mounts of its plan.
func hostOf(g ground, p parts) launch.Host {
	var all part
	all.add(p.machine.part, p.network.part, p.agent.part, p.git.part, p.nix.part, p.named, p.home,
		p.limits, p.remarks.part, p.brokered.part)
	return launch.Host{
		Facts: g.Facts, Etc: g.etc, Project: g.project.Path, Dir: g.project.Dir, State: g.Instance.Dir,
		Words: g.options.Words, Ignored: g.ignored, ExtraEnv: extraEnv(g.Facts.Env), Seccomp: seccomp.Filter(),
		Bwrap: plan.ToolPath(g.plan, resolve.ToolBwrap), Env: plan.ToolPath(g.plan, resolve.ToolEnv),
		CanLay: p.machine.canLay, OwnPIDs: p.machine.ownPIDs,
		Agent: p.agent.words, LookUp: p.agent.lookUp, Owns: p.agent.owns, Libraries: p.agent.libraries,
		Closure: p.agent.closure, Gitconfig: p.git.config, Held: p.held,
		Daemon: p.nix.daemon, NixStore: p.nix.dir, NixConf: p.nix.conf, Registry: p.nix.registry,
		Overrides: p.brokered.overrides, Bundle: p.brokered.bundle,
		Mounts: all.mounts, StandIns: all.standIns, Made: all.made, Outside: all.outside,
		Notes: all.notes, Warnings: all.warnings,
	}
}

// machinePart is what this machine can do, and what the caller's environment says.
type machinePart struct {
	part
	ownPIDs, canLay bool
}

func machineOf(env host.Environment) (m machinePart, err error) {
	if m.notes, err = judgeExtraEnv(env); err != nil {
		return m, err
	}
	m.canLay, m.ownPIDs = launch.CanLay(), launch.CanOwnPIDs()
	if !m.ownPIDs {
		m.note("process 2 is not seen in /proc here: a `kill -9` of claudebox while the sandbox is set up could " +
			"leave it running")
	}
	return m, nil
}

// LinkedMount is a mount whose source was reached by a link that an agent could
// have made: who has not approved of it must be asked.
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
