package writable

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/guarded"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// A fault that the next try may not meet is one: the launch begins again by itself.
func TestWhatCameMeanwhileIsWorthAnotherTry(t *testing.T) {
	gone := guarded.Folder{Project: project.Project{Path: t.TempDir() + "/gone"}}
	f := Folders{List: []guarded.Folder{gone}, reviews: []*aftermath.Session{{}}}
	for name, err := range map[string]error{
		"a secret": f.LookAgain(0), "what is to be watched": unwatched("/p", unix.ENOENT),
	} {
		if !errors.Is(err, launch.ErrAgain) || diag.Remedy(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := unwatched("/p", unix.ENOSPC); errors.Is(err, launch.ErrAgain) {
		t.Errorf("no room for a watch: %v", err)
	}
}
