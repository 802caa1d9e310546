package guarded

import (
	"path/filepath"
	"testing"

	"claudebox/internal/plan"
	"claudebox/internal/session/lending"
	"claudebox/internal/workspace/handover"
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

// A repository in direnv's folder, as `pip install -e git+https://…` makes one, stopped the launch: the folder inside is
// another one, which has no place for what covers that repository.
func TestARepositoryInDirenvsFolderIsNotMounted(t *testing.T) {
	opened := WithOwnDirenv(project.Project{
		Path: "/p",
		Mounts: []project.Mount{
			{Path: "/p/.direnv", Mode: project.ReadOnly, Dir: true},
			{Path: "/p/.direnv/src/r/.git", Mode: project.Inner, Dir: true},
			{Path: "/p/.direnvs/.git", Mode: project.Inner, Dir: true},
		},
		Places: []handover.Place{{Outer: "/p/.direnv/src/r/.git"}, {Outer: "/p/.git"}},
	})
	if len(opened.Mounts) != 2 || opened.Mounts[0].Mode != project.Own || opened.Mounts[1].Path != "/p/.direnvs/.git" {
		t.Errorf("%+v", opened.Mounts)
	}
	if len(opened.Places) != 1 || opened.Places[0].Outer != "/p/.git" {
		t.Errorf("%+v", opened.Places)
	}
}
