package session

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"claudebox/internal/host"
	"claudebox/internal/plan"
	"claudebox/internal/profile/profiledir"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/project"
)

// at is a call by the user of a home, in its folder "project".
func at(home string) planning.Call {
	return planning.CallOf(planning.Caller{}, planning.Options{}, planning.Purpose{}, host.Facts{
		Home: home, Cwd: home + "/project",
		Env: host.Environment{"HOME=" + home, "CLAUDEBOX_HOME=" + home + "/.claudebox", "XDG_CONFIG_HOME=" + home + "/.config"},
	})
}

func TestAPathOfTheCommandLineIsFromTheFolderTheHomeOrTheRoot(t *testing.T) {
	c := at("/home/u")
	for path, want := range map[string]string{
		"x/../y": "/home/u/project/y", "~": "/home/u", "~/x": "/home/u/x", "~x": "/home/u/project/~x", "/a//b/": "/a/b",
	} {
		if got := c.Facts.Absolute(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestAProfileThatALinkLeadsElsewhereIsFound(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	profiles := home + "/.claudebox/profiles"
	if err := os.MkdirAll(profiles, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(profiles+"/own.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{profiles + "/led.yaml": home + "/project/p.yaml", home + "/.gitconfig": "dotfiles/gitconfig"} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	got := placesByLink(at(home))
	if want := []string{profiles + "/led.yaml", home + "/.gitconfig"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsHiddenIsMountedFromClaudeboxsOwnEmptyFolder(t *testing.T) {
	empty := lending.EmptyFolder(at("/home/u").Folders.Home)
	folder := guarded.Mount(project.Mount{Path: "/p/secrets", Mode: project.Hidden, Dir: true}, empty, "")
	if folder.Kind != plan.ROBind || folder.Source != empty || folder.Destination != "/p/secrets" {
		t.Errorf("a folder: %+v", folder)
	}
	if own := (profiledir.Folders{Home: "/home/u/.claudebox"}); filepath.Dir(empty) != own.Home {
		t.Errorf("the empty folder is %s", empty)
	}
	if read := guarded.Mount(project.Mount{Path: "/p/.git/config", Mode: project.ReadOnly}, empty, ""); read.Kind != plan.ROBind || read.Source != "/p/.git/config" {
		t.Errorf("a file that is read-only: %+v", read)
	}
}
