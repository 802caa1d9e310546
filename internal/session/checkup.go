package session

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"claudebox/internal/host"
	"claudebox/internal/linux/aside"
	"claudebox/internal/network/policy"
	"claudebox/internal/nix/inside"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/secret/broker"
	"claudebox/internal/session/folders"
	"claudebox/internal/session/nixuse"
	"claudebox/internal/session/planning"
	"claudebox/internal/session/program"
	"claudebox/internal/ui/doctor"
)

// Checkup is what is found out about a launch, part by part, so that one run finds the faults of all.
type Checkup struct {
	Findings []doctor.Finding
	Facts    host.Facts // of the caller, as far as they could be found

	told []string // errors that became findings
}

// Check looks at everything that a launch with these options needs, first of
// the session, then of the machine. It changes nothing.
func Check(caller planning.Caller, o planning.Options) (c Checkup) {
	asked, err := planning.NewCall(caller, o, planning.Asking)
	if err != nil {
		c.judge("caller", err, "")
		c.Findings = append(c.Findings, doctor.Examine(doctor.Machine{})...)
		return c
	}
	c.Facts = asked.Facts
	k := &planning.Keeper{Call: asked}
	defer k.Close()
	planned := c.plan(planning.Planner{Call: asked, Keeper: k})
	h := folders.HostOf(asked, planned)
	c.parts(h, k)
	s := c.launch(caller, o)
	found := doctor.Examine(machine(h))
	c.Findings = append(c.Findings, found...)
	if s != nil {
		defer s.Close()
		if doctor.Count(found, doctor.Failed) == 0 { // else the same fault would be told twice
			c.rehearse(s)
		}
	}
	return c
}

// plan finds the plan of the launch. If there is none it takes that of the default
// profile, so that the rest can be looked at all the same; if there is none of that
// either, the plan is empty.
func (c *Checkup) plan(p planning.Planner) planning.Planned {
	name := "profile"
	if p.Options.Plan != "" {
		name = "plan"
	}
	found, err := p.Plan()
	if err == nil {
		p := found.Plan
		c.judge(name, nil, fmt.Sprintf("%s, network %s, %d packages", p.Profile, p.Network.Tier, len(p.Pins.Packages)))
		return found
	}
	c.judge(name, err, "")
	// where what is missing cannot be had, the rest is looked at for the same plan; it was warned of
	p.Purpose, p.Caller.Stderr = planning.Looking, io.Discard
	if found, err = p.Plan(); err == nil {
		return found
	}
	p.Options = planning.Options{Profile: "default"}
	if found, err = p.Plan(); err != nil {
		c.judge("default profile", err, "")
		return planning.Planned{}
	}
	c.add(name, doctor.Info, "what follows was looked at for the profile default")
	found.Plan.Agent = plan.Agent{} // whether its agent is there says nothing of the other's
	return found
}

// parts makes the parts of a launch, each by itself.
func (c *Checkup) parts(h folders.Host, k *planning.Keeper) {
	in, located := c.inputs(h)
	var p parts
	var err error
	if in.Plan.Agent.Name != "" {
		p.agent, err = program.Of(in.program(), k)
		c.judge("agent", err, strings.Join(p.agent.Words, " "))
	}
	if !located {
		return
	}
	p.mounts, _, err = mountsOf(&in)
	c.judge("mounts", err, fmt.Sprintf("%d beyond the base", len(p.agent.Mounts)+len(p.mounts.Mounts)))
	if p.inside, err = viewOf(&in, &p); err != nil {
		c.judge("mounts", err, "")
		return
	}
	if in.Plan.Nix.Daemon == "own" {
		c.caches(in.etc.NixConf, in.Plan.Network, in.Facts.Env)
	}
	_, err = gitOf(in.Host, in.agentState(), in.lending(), p.inside)
	c.judge("git", err, "the identity for this folder can be read")
}

// caches says which binary caches of the host Nix inside uses, and which not.
func (c *Checkup) caches(conf []byte, network plan.Network, env host.Environment) {
	used := nixuse.Caches(conf, network).Substituters
	detail := "Nix inside uses none"
	if len(used) > 0 {
		detail = "Nix inside uses " + strings.Join(used, ", ")
	}
	c.judge("caches", nil, detail)
	for _, cache := range inside.CachesOf(conf).Substituters {
		if !slices.Contains(used, cache) {
			c.add("caches", doctor.Info, cache+" is not reached from inside")
		}
	}
	for _, name := range host.KeptCaches(env) {
		c.add("caches", doctor.Info, name+" does not enter: its address carries a login")
	}
}

// launch prepares the whole launch, to find every fault that keeps it from starting, even one that no part knows of. It
// returns the launch or, where the agent is what is wrong, that of a program of the sandbox's own; nil: none can be.
func (c *Checkup) launch(caller planning.Caller, o planning.Options) *Session {
	caller.Stderr = io.Discard // the same warnings were printed before
	s, err := Prepare(caller, o, planning.Asking)
	if err != nil {
		c.judge("launch", err, "")
		other := planning.Asking
		other.Command = []string{"true"}
		s, _ = Prepare(caller, o, other)
		return s
	}
	c.judge("launch", nil, fmt.Sprintf("%d mounts, %d variables", len(s.Launch.Mounts), len(s.Launch.Env)))
	for _, warning := range s.Launch.Warnings {
		c.add("launch", doctor.Warning, warning)
	}
	c.secrets(s.Launch)
	for _, left := range s.Launch.Left {
		level := doctor.Info
		if left.Red {
			level = doctor.Warning
		}
		c.add("left out", level, left.Text)
	}
	return s
}

// secrets says of each secret where it may go, or that it can be read inside.
func (c *Checkup) secrets(l launch.Launch) {
	for _, o := range l.Outside {
		c.judge("secrets", nil, o.Name+" stays outside, for "+strings.Join(o.Hosts, ", "))
	}
	readable := func(what, why, remedy string) {
		c.add("secrets", doctor.Warning, what+" can be read inside ("+why+")")
		c.Findings[len(c.Findings)-1].Remedy = remedy
	}
	for _, v := range l.Env {
		if v.Secret {
			readable(v.Name, v.Why, keepOutside(v))
		}
	}
	for _, m := range l.Mounts {
		if m.Secret {
			readable(m.Destination, m.Why, "mount it only where the agent must read it")
		}
	}
}

// keepOutside says what keeps a variable's secret outside. To name it in two places refuses a launch, and so does a
// text that no broker can look for.
func keepOutside(v launch.Variable) string {
	if broker.CheckValue(v.Value) != nil {
		return "take it out there (" + v.Why + "), if the agent can do without it"
	}
	return "take it out there (" + v.Why + "), and name it under `secrets` with its hosts and without " +
		"`secret: inside`: it stays outside, and is used by a placeholder"
}

// inputs looks at the folder and at what is kept for it. It reports whether the folder may be mounted.
func (c *Checkup) inputs(h folders.Host) (in inputs, located bool) {
	in.Host = h
	var err error
	if in.project, err = h.Project(); err != nil {
		c.judge("project", err, "")
		return in, false
	}
	c.judge("project", nil, in.project.Path)
	for _, n := range in.project.Notes {
		if n.Red {
			c.add("project", doctor.Warning, n.Text)
		}
	}
	if in.Plan.State != "" {
		in.found, err = in.agentState().Look()
		detail := in.found.Dir
		if len(in.found.Makes) > 0 {
			detail += ", to be made or brought up to date"
		}
		c.judge("state", err, detail)
	}
	return in, true
}

// machine returns what the launch would use of this machine.
func machine(in folders.Host) doctor.Machine {
	p := in.Plan
	// paths of packages that a launch fetches first are left out
	present := p
	present.Pins.Packages = slices.DeleteFunc(slices.Clone(p.Pins.Packages), func(pkg plan.Package) bool {
		return slices.Contains(in.Missing, pkg.Attr)
	})
	socket, local := planning.Daemon(in.Call)
	m := doctor.Machine{
		Bwrap: in.Tools[resolve.ToolBwrap], Env: in.Tools[resolve.ToolEnv], Seccomp: seccomp.Filter(),
		Tier: p.Network.Tier, Paths: present.StorePaths(), Fetched: in.Missing, Socket: socket, Local: local,
		Nix: p.Nix.Daemon, OwnNix: in.Tools[resolve.ToolNix], AgentHomes: in.Folders.Home,
		Asks: !in.Options.Yes && in.Confirm(in.Folders) != "never",
	}
	if program, err := aside.Program(aside.NetworkProgram); err == nil && launch.OwnNetwork(p.Network) {
		m.Network = program
	}
	return m
}

// judge adds the faults of err or, without any, that all is well. A fault that was seen before is not told again.
func (c *Checkup) judge(name string, err error, detail string) {
	switch {
	case err == nil:
		c.add(name, doctor.OK, detail)
	case !slices.Contains(c.told, err.Error()):
		c.told = append(c.told, err.Error())
		c.Findings = append(c.Findings, doctor.Faults(name, err)...)
	}
}

// add adds a finding.
func (c *Checkup) add(name string, level doctor.Level, detail string) {
	c.Findings = append(c.Findings, doctor.Finding{Name: name, Level: level, Detail: detail})
}

// Addresses asks claudebox's helper for this machine's networks and addresses.
func Addresses() (here policy.Host, err error) {
	err = aside.AskHelper(context.Background(), policy.StageName, struct{}{}, &here)
	return here, err
}
