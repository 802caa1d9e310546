package session

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/diag"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/secret/leak"
	"claudebox/internal/workspace/project"
)

// How much of the user's folders that enter is looked at for secrets: it is
// done while a person waits to be asked.
const (
	mostFiles = 2000
	mostBytes = 64 << 10 // of a file
)

// coverLent covers what looks secret in a folder of the user's own that the
// agent can read, and reports whether all of it was looked at.
func (s *Session) coverLent(h *launch.Host, source, destination string, show []string) (whole bool, err error) {
	shown := func(rel string) bool { return project.Shown(show, s.pattern(filepath.Join(source, rel))) }
	covers, cut, err := project.LookLent(source, shown)
	if err != nil {
		return false, &diag.Error{
			Op: "look for secrets in " + source, Err: diag.Cause(err),
			Remedy: "make it readable for you, or take it away",
		}
	}
	for _, c := range covers {
		at := filepath.Join(source, c.Rel)
		h.Mounts = append(h.Mounts,
			launch.Mount{
				Kind: plan.ROData, Source: at, Destination: destination + "/" + c.Rel, Data: c.Content,
				Why: whySecret,
			})
		s.covered = append(s.covered, at)
		h.Notes = append(h.Notes, at+" looks secret and does not enter; `show: ["+s.pattern(at)+"]` lets it in")
	}
	return !cut, nil
}

// pattern is a path as `show` in a profile names it, from the user's home or
// from the root.
func (c call) pattern(path string) string {
	if rest, ok := strings.CutPrefix(path, c.Facts.Home+"/"); ok {
		return rest
	}
	return strings.TrimPrefix(path, "/")
}

const whySecret = "it looks secret"

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
		s.Launch.Notes = append(s.Launch.Notes,
			fmt.Sprintf("of the folders of your ~/.claude, %d files were looked at for secrets, not all", mostFiles))
	}
}
