package session

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/plan/resolve"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/ui/doctor"
)

// Checkup is a session that is prepared part by part, so that one run finds
// the faults of all.
type Checkup struct {
	Findings []doctor.Finding

	caller  Caller
	options Options
	session *Session
	told    []string // errors that became findings
}

// Check looks at everything that a launch with these options needs, first of
// the session, then of the machine. It changes nothing.
func Check(caller Caller, o Options) Checkup {
	c := Checkup{caller: caller, options: o}
	facts, err := host.Detect()
	if err != nil {
		c.judge("caller", err, "")
		c.Findings = append(c.Findings, doctor.Examine(doctor.Machine{})...)
		return c
	}
	c.session = newSession(newCall(caller, o, looking, facts))
	defer c.session.Close()
	p := c.plan()
	c.parts(p)
	c.launch()
	c.Findings = append(c.Findings, doctor.Examine(c.machine(p))...)
	return c
}

// Facts are those of the caller, as far as they could be found.
func (c Checkup) Facts() host.Facts {
	if c.session == nil {
		return host.Facts{}
	}
	return c.session.Facts
}

// looking is the Purpose of all that a check does.
var looking = Purpose{Look: true}

// plan finds the plan of the launch. When there is none, the default
// profile's stands in, so that the rest can be looked at all the same; when
// there is none of that either, the plan is empty.
func (c *Checkup) plan() plan.Plan {
	name := "profile"
	if c.options.Plan != "" {
		name = "plan"
	}
	found, err := c.session.planner().plan()
	if err == nil {
		c.session.planned = found
		c.judge(name, nil, describePlan(found.plan))
		return found.plan
	}
	c.judge(name, err, "")
	other := c.session.planner()
	other.options = Options{Profile: "default"}
	found, second := other.plan()
	if second == nil {
		c.session.planned = found
		p := found.plan
		c.add(name, doctor.Info, "what follows was looked at for the profile default")
		p.Agent = plan.Agent{} // whether its agent is there says nothing of the other's
		return p
	}
	c.judge("default profile", second, "")
	return plan.Plan{}
}

func describePlan(p plan.Plan) string {
	return fmt.Sprintf("%s, network %s, %d packages", p.Profile, p.Network.Tier, len(p.Pins.Packages))
}

// parts prepares each part of the Session by itself.
func (c *Checkup) parts(p plan.Plan) {
	located := c.project(p)
	h := &launch.Host{Facts: c.session.Facts, State: c.session.Instance.Dir}
	for _, part := range []struct {
		name  string
		needs bool
		add   func(*launch.Host, plan.Plan) error
		done  func() string
	}{
		{"agent", p.Agent.Name != "", c.session.addAgent, func() string { return strings.Join(h.Agent, " ") }},
		{"git", located, c.session.addGit, func() string { return "the identity for this folder can be read" }},
		{
			"mounts", located, c.session.addMounts,
			func() string { return fmt.Sprintf("%d beyond the base", len(h.Mounts)) },
		},
	} {
		if part.needs {
			err := part.add(h, p)
			c.judge(part.name, err, part.done())
		}
	}
}

// launch prepares the whole as a launch does. So nothing that keeps it from
// starting goes unseen, even what no part knows of.
func (c *Checkup) launch() {
	caller := c.caller
	caller.Stderr = io.Discard // the same warnings, said before
	s, err := Prepare(caller, c.options, looking)
	if err != nil {
		c.judge("launch", err, "")
		return
	}
	defer s.Close()
	c.judge("launch", nil, fmt.Sprintf("%d mounts, %d variables", len(s.Launch.Mounts), len(s.Launch.Env)))
	c.secrets(s.Launch)
}

// secrets says of each where it may go, or that it can be read inside.
func (c *Checkup) secrets(l launch.Launch) {
	for _, o := range l.Outside {
		c.judge("secrets", nil, o.Name+" stays outside, for "+strings.Join(o.Hosts, ", "))
	}
	readable := func(what, why, remedy string) {
		c.Findings = append(c.Findings, doctor.Finding{
			Name: "secrets", Level: doctor.Warning, Detail: what + " can be read inside (" + why + ")", Remedy: remedy,
		})
	}
	for _, v := range l.Env {
		if v.Secret {
			readable(v.Name, v.Why, "name it under `secrets` with its hosts, and it stays outside")
		}
	}
	for _, m := range l.Mounts {
		if m.Secret {
			readable(m.Destination, m.Why, "mount it only where the agent must read it")
		}
	}
}

// project looks at the folder and at what is kept for it. It reports whether
// the folder may be mounted.
func (c *Checkup) project(p plan.Plan) bool {
	var err error
	if c.session.project, err = c.session.openProject(p); err != nil {
		c.judge("project", err, "")
		return false
	}
	c.judge("project", nil, c.session.project.Path)
	for _, n := range c.session.project.Notes {
		if n.Red {
			c.add("project", doctor.Warning, n.Text)
		}
	}
	if p.State == "" {
		return true
	}
	c.session.Instance, err = c.session.lookAtState(p)
	c.judge("state", err, describeState(c.session.Instance.Dir, len(c.session.Instance.Makes) > 0))
	return true
}

func describeState(dir string, makes bool) string {
	if makes {
		return dir + ", to be made or brought up to date"
	}
	return dir
}

// machine is what the launch would use of this machine.
func (c *Checkup) machine(p plan.Plan) doctor.Machine {
	socket, local := c.session.daemon()
	return doctor.Machine{
		Bwrap:   plan.ToolPath(p, resolve.ToolBwrap),
		Env:     plan.ToolPath(p, resolve.ToolEnv),
		Seccomp: seccomp.Filter(),
		Tier:    p.Network.Tier,
		Network: networkHelper(p),
		Paths:   presentPaths(p, c.session.planned.missing),
		Fetched: c.session.planned.missing,
		Socket:  socket,
		Local:   local,
		Nix:     p.Nix.Daemon,
		Home:    c.session.folders.Home,
		Asks:    !c.options.Yes && p.Asks(),
	}
}

// presentPaths are the plan's store paths without those of packages that a
// launch fetches first.
func presentPaths(p plan.Plan, missing []string) []string {
	p.Pins.Packages = slices.DeleteFunc(slices.Clone(p.Pins.Packages), func(pkg plan.Package) bool {
		return slices.Contains(missing, pkg.Attr)
	})
	return p.StorePaths()
}

// judge adds the faults of err or, without any, that all is well. A fault
// that was seen before is not told again.
func (c *Checkup) judge(name string, err error, detail string) {
	switch {
	case err == nil:
		c.add(name, doctor.OK, detail)
	case !slices.Contains(c.told, err.Error()):
		c.told = append(c.told, err.Error())
		c.Findings = append(c.Findings, doctor.Faults(name, err)...)
	}
}

func (c *Checkup) add(name string, level doctor.Level, detail string) {
	c.Findings = append(c.Findings, doctor.Finding{Name: name, Level: level, Detail: detail})
}

// networkHelper is the program that would serve the network of a launch by the
// plan; empty: it needs none.
func networkHelper(p plan.Plan) string {
	program, err := ownProgram(networkName)
	if err != nil || !launch.OwnNetwork(p.Network) {
		return ""
	}
	return program
}
