package session

import (
	"os"
	"path/filepath"
	"slices"

	"claudebox/internal/diag"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// whyWorktree is the rule behind a mount of `worktrees`.
const whyWorktree = "worktrees"

// addWorktrees mounts the folders beside the project that a pattern of the
// profile names, read-write. Links are left out: they lead elsewhere.
func (s *Session) addWorktrees(h *launch.Host, patterns []string) error {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(s.project.Path, pattern))
		if err != nil {
			return &diag.Error{
				Op: "look for worktrees by " + pattern, Err: err,
				Remedy: "mend the pattern in the profile",
			}
		}
		for _, folder := range found {
			m := launch.Mount{Kind: plan.Bind, Source: folder, Destination: folder, Open: true, Why: whyWorktree}
			known := slices.ContainsFunc(h.Mounts, func(o launch.Mount) bool { return o.Destination == folder })
			if info, err := os.Lstat(folder); err != nil || !info.IsDir() || known || folder == s.project.Path {
				continue
			}
			if err := s.judgeFlagMount("mount "+folder+" (worktrees)", m); err != nil {
				return err
			}
			h.Mounts = append(h.Mounts, m)
		}
	}
	return nil
}
