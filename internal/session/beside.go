package session

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"claudebox/internal/linux/pathname"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/project"
)

// beside is a folder that is mounted read-write beside the project. The host's
// git obeys what is in there, so it is guarded as the project is.
type beside struct {
	project.Project
	at string // where it lies inside
}

// guardBeside guards the folders that the user mounts read-write, and covers what
// looks secret in those that may be read. It adds the mounts that this takes.
func (s *Session) guardBeside(h *launch.Host, p plan.Plan) error {
	for _, m := range slices.Clone(h.Mounts) {
		if !userNamed(m) || !isFolder(m.Source) || pathname.Below(m.Source, s.project.Path) {
			continue
		}
		if err := s.guardFolder(h, p, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) guardFolder(h *launch.Host, p plan.Plan, m launch.Mount) error {
	if m.Kind == plan.Bind {
		return s.addBeside(h, p, m)
	}
	if m.Kind != plan.ROBind || m.Secret || pathname.Below(m.Source, "/nix/store") ||
		pathname.Below(s.project.Path, m.Source) {
		return nil // granted, public, or refused for what it would open
	}
	whole, err := s.coverLent(h, m.Source, m.Destination, p.Show)
	if err == nil && !whole {
		h.Warnings = append(h.Warnings,
			fmt.Sprintf("%s has more than %d entries: further secret files in it are not hidden",
				m.Source, project.LentLimit))
	}
	return err
}

func isFolder(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

func (s *Session) addBeside(h *launch.Host, p plan.Plan, m launch.Mount) error {
	req := s.request(p)
	req.Dir, req.GitRoot, req.Protect = m.Source, false, nil
	if m.Secret {
		req.Show = []string{"**"} // all of it was asked for
	}
	opened, err := project.OpenBeside(req)
	if err != nil {
		return err
	}
	b := beside{opened, m.Destination}
	s.beside = append(s.beside, b)
	taken := func(destination string) bool {
		lies := func(m launch.Mount) bool { return m.Destination == destination }
		return slices.ContainsFunc(h.Mounts, lies)
	}
	for _, kept := range opened.Mounts {
		made := s.projectMount(kept)
		made.Destination, made.Secret = b.inside(kept.Path), m.Secret
		if !taken(made.Destination) && pathname.Below(kept.Path, m.Source) &&
			!pathname.Below(kept.Path, s.project.Path) {
			h.Mounts = append(h.Mounts, made)
		}
	}
	s.addStandIns(h, opened)
	addNotes(h, m.Source+": ", opened)
	if s.isMoved(opened) {
		h.Notes = append(h.Notes,
			m.Source+" lies elsewhere inside: what you replace there while the session runs is not covered again")
	}
	return nil
}

// inside is where a path of the folder lies in the sandbox.
func (b beside) inside(path string) string { return b.at + strings.TrimPrefix(path, b.Path) }
