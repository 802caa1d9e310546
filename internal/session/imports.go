package session

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/launch"
	"claudebox/internal/leak"
	"claudebox/internal/lent"
	"claudebox/internal/plan"
	"claudebox/internal/project"
	"claudebox/internal/smallfile"
	"claudebox/internal/state"
)

// How much of the user's folders that enter is looked at for secrets: it is
// done while a person waits to be asked.
const (
	mostFiles = 2000
	mostBytes = 64 << 10 // of a file
)

// coverLent covers what looks secret in a folder of the user's own that the
// agent can read.
func (s *Session) coverLent(h *launch.Host, in state.Import, show []string) error {
	name := func(rel string) string { return s.short(filepath.Join(in.Source, rel)) }
	covers, cut, err := lent.Covers(in.Source, func(rel string) bool {
		return project.Shown(show, strings.TrimPrefix(name(rel), "~/"))
	})
	switch {
	case err != nil:
		return &diag.Error{Op: "look for secrets in " + in.Source, Err: err, Remedy: "make it readable for you, or take it away"}
	case cut && !slices.Contains(show, "**"):
		return diag.Errorf("look for secrets in "+in.Source, "take away what you do not need, or say `show: [\"**\"]` in the profile",
			"it has more than %d entries", lent.Limit)
	}
	for _, c := range covers {
		h.Mounts = append(h.Mounts, launch.Mount{
			Kind: plan.ROData, Source: filepath.Join(in.Source, c.Rel), Destination: in.Destination + "/" + c.Rel, Data: c.Content, Why: whySecret,
		})
		s.covered = append(s.covered, filepath.Join(in.Source, c.Rel))
		h.Notes = append(h.Notes, name(c.Rel)+" looks secret and does not enter; `show: ["+strings.TrimPrefix(name(c.Rel), "~/")+"]` lets it in")
	}
	return nil
}

const whySecret = "it looks secret"

// short is a path with ~ for the user's home.
func (s *Session) short(name string) string {
	if rest, ok := strings.CutPrefix(name, s.Facts.Home+"/"); ok {
		return "~/" + rest
	}
	return name
}

// JudgeImports notes what looks like a secret in the user's own agents,
// commands, skills and the like, which the agent can read (SEC-01). It takes
// some milliseconds, so it is for who shows the launch to a person.
func (s *Session) JudgeImports() {
	left := mostFiles
	for _, in := range s.Instance.Imports {
		_ = filepath.WalkDir(in.Source, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || !d.Type().IsRegular() || slices.Contains(s.covered, name):
				return nil // what cannot be read by the user cannot be by the agent
			case left == 0:
				return fs.SkipAll
			}
			left--
			if content, err := smallfile.Read(name, mostBytes); err == nil {
				if what := leak.Text(string(content)); what != "" {
					s.Launch.Notes = append(s.Launch.Notes, name+" enters, and holds what looks like "+what)
				}
			}
			return nil
		})
	}
	if left == 0 {
		s.Launch.Notes = append(s.Launch.Notes, fmt.Sprintf("of the folders of your ~/.claude, %d files were looked at for secrets, not all", mostFiles))
	}
}
