package guarded

import (
	"path/filepath"
	"testing"

	"claudebox/internal/plan"
	"claudebox/internal/session/lending"
	"claudebox/internal/workspace/project"
)

func TestWhatIsHiddenIsMountedFromClaudeboxsOwnEmptyFolder(t *testing.T) {
	empty := lending.EmptyFolder("/home/u/.claudebox")
	folder := Mount(project.Mount{Path: "/p/secrets", Mode: project.Hidden, Dir: true}, empty, "")
	if folder.Kind != plan.ROBind || folder.Source != empty || folder.Destination != "/p/secrets" {
		t.Errorf("a folder: %+v", folder)
	}
	if filepath.Dir(empty) != "/home/u/.claudebox" {
		t.Errorf("the empty folder is %s", empty)
	}
	if read := Mount(project.Mount{Path: "/p/.git/config", Mode: project.ReadOnly}, empty, ""); read.Kind != plan.ROBind || read.Source != "/p/.git/config" {
		t.Errorf("a file that is read-only: %+v", read)
	}
}
