package launch

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/host"
	"claudebox/internal/plan"
)

// Hostname is the name of every sandbox: the host's own would tell the agent
// whose machine it is on.
const Hostname = "claudebox"

// Host is what a launch needs to know besides its plan, as values.
type Host struct {
	Facts     host.Facts
	Etc       host.Etc
	Bwrap     string   // the program; the manifest's, or one from PATH
	Env       string   // coreutils' env, which sets the signals back
	Project   string   // canonical folder, mounted at its own path
	Dir       string   // current folder inside, at or below Project
	State     string   // the instance's folder
	Daemon    bool     // the Nix daemon may be reached
	Agent     []string // the program and the words it always gets, as the sandbox sees them
	Words     []string // the caller's words for the agent
	Gitconfig []byte   // the made .gitconfig
	Mounts    []Mount  // of the project's git, the agent's program, the imports
	Overrides map[string]Override
	Ignored   []string // signals that the caller had ignored: "INT", "HUP"
	Seccomp   []byte
	Notes     []string
	Warnings  []string
}

// Override says that a host variable enters with another value, or not at
// all.
type Override struct {
	Value string
	Drop  bool
	Why   string
}

// Bind makes the launch of a plan on a host. It is a pure function. It fails
// when two mounts would lie on one destination.
func Bind(p plan.Plan, h Host) (Launch, error) {
	late := lateValues(h)
	l := Launch{
		Plan: p, Bwrap: h.Bwrap, Tier: p.Network.Tier, Hostname: Hostname,
		Env: variables(p, h, late), Project: h.Project, Dir: h.Dir, Agent: h.Agent, Request: h.Words, Seccomp: h.Seccomp,
		Command: command(p, h), Notes: h.Notes, Warnings: h.Warnings,
	}
	l.Mounts = bindMounts(p, h, late)
	parents := projectParents(h, l.Mounts)
	for _, dir := range parents {
		l.Mounts = append(l.Mounts, Mount{Kind: plan.Tmpfs, Destination: dir, Mode: "0755", Size: parentSize, Why: "parent of the project"})
	}
	slices.SortStableFunc(l.Mounts, byDestination)
	if err := noConflicts(l.Mounts); err != nil {
		return Launch{}, err
	}
	markAbove(l.Mounts)
	l.ReadOnly = append(parents, "/")
	return l, nil
}

// parentSize bounds, in bytes, a folder that holds mount points only.
const parentSize = 1 << 20

func byDestination(a, b Mount) int { return cmp.Compare(a.Destination, b.Destination) }

// runtimeDir is XDG_RUNTIME_DIR inside, at its usual place.
func runtimeDir(uid string) string { return "/run/user/" + uid }

func lateValues(h Host) *strings.Replacer {
	return strings.NewReplacer(
		"${home}", h.Facts.Home,
		"${project}", h.Project,
		"${state}", h.State,
		"${runtime}", runtimeDir(strconv.Itoa(h.Facts.UID)),
		"${cwd}", h.Dir,
		"${certs}", h.Etc.Certificates,
		"${zone-name}", h.Etc.ZoneName,
	)
}

// bindMounts makes the plan's mounts final and adds the host's own.
func bindMounts(p plan.Plan, h Host, late *strings.Replacer) []Mount {
	files := madeFiles(p, h)
	var list []Mount
	for _, m := range p.Mounts {
		if unbound(m, h) {
			continue
		}
		list = append(list, bindMount(m, late, files))
	}
	if h.Daemon {
		list = append(list, Mount{
			Kind: plan.ROBind, Source: plan.DaemonSocketDir, Destination: plan.DaemonSocketDir, Why: "nix daemon",
		})
	}
	return append(list, slices.DeleteFunc(slices.Clone(h.Mounts), func(m Mount) bool {
		return slices.ContainsFunc(list, func(have Mount) bool {
			return have.Destination == m.Destination && m.Optional
		})
	})...)
}

// unbound tells whether the host has nothing for an optional mount.
func unbound(m plan.Mount, h Host) bool {
	return m.Optional && (m.Source == "${certs}" && h.Etc.Certificates == "" ||
		strings.Contains(m.Destination+m.Source, "${zone-name}") && h.Etc.Zone == nil)
}

func bindMount(m plan.Mount, late *strings.Replacer, files map[plan.MadeFile][]byte) Mount {
	b := Mount{
		Kind: m.Kind, Source: m.Source, Destination: late.Replace(m.Destination), Mode: m.Mode, Size: m.Size,
		Secret: m.Secret, Optional: m.Optional, Why: m.Why,
	}
	switch m.Kind {
	case plan.File, plan.ROData:
		b.Data = files[plan.MadeFile(m.Source)]
		return b
	case plan.Bind, plan.ROBind:
		b.Open = isBeneathUser(m)
	}
	b.Source = late.Replace(m.Source)
	return b
}

// isBeneathUser tells sources that a user or an agent can write from those
// that only root and Nix can: the former are opened and checked before they
// are mounted.
func isBeneathUser(m plan.Mount) bool {
	return m.Why != "base" || strings.HasPrefix(m.Source, "${") && m.Source != "${certs}"
}

// projectParents are the folders between home and the project. Inside they
// are empty and read-only, so that `git worktree add ../x` fails there
// instead of vanishing with the session. Only the topmost must be a mount:
// the others lie in it.
func projectParents(h Host, mounts []Mount) []string {
	rest, ok := strings.CutPrefix(h.Project, h.Facts.Home+"/")
	first, _, deeper := strings.Cut(rest, "/")
	if !ok || !deeper {
		return nil
	}
	top := path.Join(h.Facts.Home, first)
	if slices.ContainsFunc(mounts, func(m Mount) bool { return m.Destination == top }) {
		return nil
	}
	return []string{top}
}

// noConflicts refuses two mounts at one destination.
func noConflicts(list []Mount) error {
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if a.Destination == b.Destination {
			return diag.Errorf("bind the mounts", "leave one of the two out",
				"%s (%s) and %s (%s) would both lie at %s", a.Source, a.Why, b.Source, b.Why, a.Destination)
		}
	}
	return nil
}

// markAbove notes for each mount the writable bind that its destination lies
// in. bwrap must not create anything there: an agent may have planted a link
// (CVE-2026-87766).
func markAbove(list []Mount) {
	for i := range list {
		if up := nearest(list[:i], list[i].Destination); up != nil && up.Kind == plan.Bind {
			list[i].Above = Place{Root: up.Source, Path: strings.TrimPrefix(list[i].Destination, up.Destination+"/")}
		}
	}
}

// nearest is the last mount that destination lies strictly below.
func nearest(list []Mount, destination string) *Mount {
	for i := len(list) - 1; i >= 0; i-- {
		at := strings.TrimSuffix(list[i].Destination, "/")
		if list[i].Kind != plan.Symlink && strings.HasPrefix(destination, at+"/") && destination != at {
			return &list[i]
		}
	}
	return nil
}

// command is what bwrap runs: the shim that sets back the signals which bwrap
// had to ignore, then the agent and its words. A signal that the caller
// ignores (nohup, a background job of a script) stays ignored.
func command(p plan.Plan, h Host) []string {
	var restore []string
	for _, name := range []string{"INT", "QUIT", "TERM", "HUP"} {
		if !slices.Contains(h.Ignored, name) {
			restore = append(restore, name)
		}
	}
	shim := []string{h.Env}
	if len(restore) > 0 {
		shim = append(shim, "--default-signal="+strings.Join(restore, ","))
	}
	return slices.Concat(shim, []string{"--"}, h.Agent, h.Words)
}

func variables(p plan.Plan, h Host, late *strings.Replacer) []Variable {
	var list []Variable
	for _, e := range p.Env {
		if v, ok := variable(e, h, late); ok {
			list = append(list, v)
		}
	}
	for _, e := range hostMade(p, h) {
		if !slices.ContainsFunc(list, func(v Variable) bool { return v.Name == e.Name }) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func variable(e plan.Env, h Host, late *strings.Replacer) (Variable, bool) {
	switch e.From {
	case plan.FromConst:
		return Variable{Env: e, Value: e.Value}, true
	case plan.FromMade:
		return Variable{Env: e, Value: late.Replace(e.Value)}, e.Name != "NIX_REMOTE" || h.Daemon
	}
	if o, ok := h.Overrides[e.Name]; ok {
		e.From, e.Why = plan.FromMade, o.Why
		return Variable{Env: e, Value: o.Value}, !o.Drop
	}
	value, ok := h.Facts.Env.Get(e.Name)
	return Variable{Env: e, Value: value}, ok
}

// hostMade are variables that are made only where the host has not said
// something better.
func hostMade(p plan.Plan, h Host) []Variable {
	made := func(name, value, why string) Variable {
		return Variable{Env: plan.Env{Name: name, From: plan.FromMade, Why: why}, Value: value}
	}
	list := []Variable{made("LANG", "C.UTF-8", "base"), made("USER", h.Facts.User, "base")}
	if h.Overrides["EDITOR"].Drop {
		list = append(list, made("GIT_EDITOR", "true", "EDITOR is not inside"))
	}
	return list
}
