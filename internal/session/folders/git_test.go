package folders

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"claudebox/internal/host"
	"claudebox/internal/session/gituse"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// TestTheUsersOwnIgnoreFileLiesInTheProject, as in a folder of dotfiles: git obeys it without a setting.
func TestTheUsersOwnIgnoreFileLiesInTheProject(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	must(os.MkdirAll(home+"/project", 0o755))
	must(os.MkdirAll(home+"/.config/git", 0o755))
	for _, name := range []string{"ignore", "attributes"} {
		must(os.WriteFile(home+"/project/"+name, nil, 0o644))
		must(os.Symlink("../../project/"+name, home+"/.config/git/"+name))
	}
	p, err := project.Open(project.Request{
		Dir: home + "/project", Home: home, UID: os.Getuid(), UserGit: gituse.ReadConfig(at(home).Facts).Files,
		Memory: aftermath.NewMemory(home + "/.claudebox"),
	})
	must(err)
	if want := []string{"attributes", "ignore"}; !slices.Equal(p.ReadOnly, want) {
		t.Errorf("read-only %q, want %q", p.ReadOnly, want)
	}
}

// at is a call by the user of a home, in its folder "project".
func at(home string) planning.Call {
	return planning.CallOf(planning.Caller{}, planning.Options{}, planning.Purpose{}, host.Facts{
		Home: home, Cwd: home + "/project",
		Env: host.Environment{"HOME=" + home, "CLAUDEBOX_HOME=" + home + "/.claudebox", "XDG_CONFIG_HOME=" + home + "/.config"},
	})
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
