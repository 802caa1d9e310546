package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"claudebox/internal/doctor"
	"claudebox/internal/launch"
	"claudebox/internal/nixdaemon"
	"claudebox/internal/plan"
	"claudebox/internal/resolve"
	"claudebox/internal/seccomp"
)

// looking is the purpose of all that a check does.
var looking = purpose{look: true}

// plan finds the plan of the launch. When there is none, the default
// profile's stands in, so that the rest can be looked at all the same; when
// there is none of that either, the plan is empty.
func (c *checkup) plan() plan.Plan {
	name := "profile"
	if c.options.plan != "" {
		name = "plan"
	}
	p, err := c.session.choosePlan(c.sys, c.options, looking)
	if err == nil {
		c.judge(name, refuseUnbuilt(p), describePlan(p))
		return p
	}
	c.judge(name, err, "")
	c.session.missing = nil
	p, second := c.session.choosePlan(c.sys, options{profile: "default"}, looking)
	if second == nil {
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

// parts prepares each part of the session by itself.
func (c *checkup) parts(p plan.Plan) {
	located := c.project(p)
	h := &launch.Host{Facts: c.session.facts}
	for _, part := range []struct {
		name  string
		needs bool
		add   func(*launch.Host, plan.Plan, options, purpose) error
		done  func() string
	}{
		{"agent", p.Agent.Name != "", c.session.addAgent, func() string { return strings.Join(h.Agent, " ") }},
		{"git", located, c.session.addGit, func() string { return "the identity for this folder can be read" }},
		{"mounts", located, c.session.addMounts, func() string { return fmt.Sprintf("%d beyond the base", len(h.Mounts)) }},
	} {
		if part.needs {
			err := part.add(h, p, c.options, looking)
			c.judge(part.name, err, part.done())
		}
	}
}

// launch prepares the whole as a launch does. So nothing that keeps it from
// starting goes unseen, even what no part knows of.
func (c *checkup) launch() {
	sys := c.sys
	sys.Stderr = io.Discard // the same warnings, said before
	s, err := prepare(sys, c.options, looking)
	defer s.close()
	c.judge("launch", err, fmt.Sprintf("%d mounts, %d variables", len(s.launch.Mounts), len(s.launch.Env)))
}

// project looks at the folder and at what is kept for it. It tells whether
// the folder may be given away.
func (c *checkup) project(p plan.Plan) bool {
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
	c.session.instance, err = c.session.lookAtState(p)
	c.judge("state", err, describeState(c.session.instance.Dir, len(c.session.instance.Makes) > 0))
	return true
}

func describeState(dir string, makes bool) string {
	if makes {
		return dir + ", to be made or brought up to date"
	}
	return dir
}

// machine is what the launch would use of this machine.
func (c *checkup) machine(p plan.Plan) doctor.Machine {
	env := c.session.facts.Env
	return doctor.Machine{
		Bwrap:   plan.ToolPath(p, resolve.ToolBwrap),
		Env:     plan.ToolPath(p, resolve.ToolEnv),
		Seccomp: seccomp.Filter(),
		Tier:    p.Network.Tier,
		Paths:   presentPaths(p, c.session.missing),
		Fetched: c.session.missing,
		Socket:  nixdaemon.SocketPath(env.Value("NIX_DAEMON_SOCKET_PATH", ""), env.Value("NIX_STATE_DIR", "")),
		Daemon:  p.Nix.Daemon != "off" && p.Network.Tier == "full",
		Home:    c.session.folders.home,
		Asks:    !c.options.yes && p.Confirm != "never",
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
func (c *checkup) judge(name string, err error, detail string) {
	switch {
	case err == nil:
		c.add(name, doctor.OK, detail)
	case !slices.Contains(c.told, err.Error()):
		c.told = append(c.told, err.Error())
		c.findings = append(c.findings, doctor.Faults(name, err)...)
	}
}

func (c *checkup) add(name string, level doctor.Level, detail string) {
	c.findings = append(c.findings, doctor.Finding{Name: name, Level: level, Detail: detail})
}
