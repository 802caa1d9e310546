package session

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"claudebox/internal/leak"
	"claudebox/internal/smallfile"
)

// How much of the user's folders that enter is looked at for secrets: it is
// done while a person waits to be asked.
const (
	mostFiles = 2000
	mostBytes = 64 << 10 // of a file
)

// JudgeImports notes what looks like a secret in the user's own agents,
// commands, skills and the like, which the agent can read (SEC-01). It takes
// some milliseconds, so it is for who shows the launch to a person.
func (s *Session) JudgeImports() {
	left := mostFiles
	for _, in := range s.Instance.Imports {
		_ = filepath.WalkDir(in.Source, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || !d.Type().IsRegular():
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
