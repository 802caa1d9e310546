package writable

import (
	"os"
	"path/filepath"
	"testing"

	"claudebox/checks/kit/must"
)

// An agent takes hold of a .git file in the moment in which the user's git has made it anew.
func TestAnAgentKeepsAWayToWriteAGitFile(t *testing.T) {
	const was = "gitdir: ../.git/modules/m\n"
	for name, tc := range map[string]struct {
		then func(at string) (*os.File, error)
		kept bool
	}{
		"it did not":        {func(string) (*os.File, error) { return nil, nil }, true},
		"it wrote":          {func(at string) (*os.File, error) { return nil, os.WriteFile(at, []byte("gitdir: ../m\n"), 0o600) }, false},
		"it has it open":    {func(at string) (*os.File, error) { return os.OpenFile(at, os.O_WRONLY, 0) }, false},
		"another name":      {func(at string) (*os.File, error) { return nil, os.Link(at, at+"2") }, false},
		"a link":            {func(at string) (*os.File, error) { return nil, os.Symlink(at, at+"2") }, true},
		"it took it away":   {func(at string) (*os.File, error) { return nil, os.Remove(at) }, false},
		"it made it longer": {func(at string) (*os.File, error) { return nil, os.WriteFile(at, []byte(was+"x"), 0o600) }, false},
	} {
		at := filepath.Join(t.TempDir(), ".git")
		must.Write(t, at, was)
		f, err := tc.then(at)
		must.Do(t, err)
		if got := isKept(at, []byte(was)); got != tc.kept {
			t.Errorf("%s: kept %v, want %v", name, got, tc.kept)
		}
		if f != nil {
			f.Close()
		}
	}
}
