package session

import (
	"path/filepath"
	"slices"

	"claudebox/internal/agent/state"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/project"
)

// addMounts adds what the project's repository, the agent's home and the
// command line ask for.
func (s *Session) addMounts(h *launch.Host, p plan.Plan) error {
	for _, m := range s.project.Mounts {
		h.Mounts = append(h.Mounts, s.projectMount(m))
	}
	s.addStandIns(h, s.project)
	for _, word := range s.options.MountRO {
		if err := s.addFlagMount(h, word, plan.ROBind, "--mount-ro"); err != nil {
			return err
		}
	}
	for _, word := range s.options.MountRW {
		if err := s.addFlagMount(h, word, plan.Bind, "--mount-rw"); err != nil {
			return err
		}
	}
	if err := s.addWorktrees(h, p.Beside); err != nil {
		return err
	}
	for _, path := range h.Etc.Managed {
		h.Mounts = append(h.Mounts, launch.Mount{
			Kind: plan.ROBind, Source: path, Destination: "/etc/claude-code/" + filepath.Base(path),
			Why: "policy of this machine",
		})
	}
	return nil
}

// addStandIns adds what the mounts of a given folder rely on, see [shared].
func (c call) addStandIns(h *launch.Host, given project.Project) {
	empty := launch.StandIn{Path: c.emptyFolder(), Dir: true}
	if slices.ContainsFunc(given.Mounts, hidesFolder) && !slices.Contains(h.StandIns, empty) {
		h.StandIns = append(h.StandIns, empty)
	}
	for _, p := range given.StandIns {
		h.StandIns = append(h.StandIns, launch.StandIn{Path: p.Root + "/" + p.Rel, Dir: p.Dir, Content: p.Content})
	}
}

// addNotes adds what a person should know of such a folder; about goes before
// what is not red.
func addNotes(h *launch.Host, about string, given project.Project) {
	for _, n := range given.Notes {
		if n.Red {
			h.Warnings = append(h.Warnings, n.Text)
		} else {
			h.Notes = append(h.Notes, about+n.Text)
		}
	}
}

// projectMount is a path of the project mounted over itself.
func (c call) projectMount(m project.Mount) launch.Mount {
	b := launch.Mount{Kind: plan.Bind, Source: m.Path, Destination: m.Path, Open: true, Why: m.Why}
	switch m.Mode {
	case project.ReadOnly:
		b.Kind = plan.ROBind
	case project.Made:
		b.Kind, b.Data, b.Open = plan.ROData, m.Content, false
	case project.Hidden:
		if m.Dir {
			b.Kind, b.Source = plan.ROBind, c.emptyFolder()
			break
		}
		b.Kind, b.Open = plan.ROData, false
	}
	return b
}

// emptyFolder stands in for folders that are hidden. It is out of the reach of
// every sandbox.
func (c call) emptyFolder() string { return filepath.Join(c.folders.Home, "empty") }

func hidesFolder(m project.Mount) bool { return m.Mode == project.Hidden && m.Dir }

func (s *Session) isImport(path string) bool {
	return slices.ContainsFunc(s.Instance.Imports, func(in state.Import) bool { return in.Source == path })
}

// showsState reports whether a canonical path is CLAUDEBOX_HOME, which may lie
// anywhere, or lies in it or around it.
func (c call) showsState(path string) bool {
	home, err := beneath.Canonical(c.folders.Home)
	return err == nil && (pathname.Below(path, home) || pathname.Below(home, path))
}
