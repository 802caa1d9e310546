package folders

import (
	"os"
	"slices"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/host"
	"claudebox/internal/session/gituse"
	"claudebox/internal/session/planning"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// TestTheUsersOwnIgnoreFileLiesInTheProject, as in a folder of dotfiles: git obeys it without a setting.
func TestTheUsersOwnIgnoreFileLiesInTheProject(t *testing.T) {
	home := must.Folder(t)
	must.Do(t, os.MkdirAll(home+"/.config/git", 0o755))
	for _, name := range []string{"ignore", "attributes"} {
		must.Write(t, home+"/project/"+name, "")
		must.Do(t, os.Symlink("../../project/"+name, home+"/.config/git/"+name))
	}
	p, err := project.Open(project.Request{
		Dir: home + "/project", Home: home, UID: os.Getuid(), UserGit: gituse.ReadConfig(at(home).Facts).Files,
		Memory: aftermath.NewMemory(home + "/.claudebox"),
	})
	must.Do(t, err)
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
	home := must.Folder(t)
	profiles := home + "/.claudebox/profiles"
	must.Do(t, os.MkdirAll(profiles, 0o700))
	must.Write(t, profiles+"/own.yaml", "")
	for name, to := range map[string]string{profiles + "/led.yaml": home + "/project/p.yaml", home + "/.gitconfig": "dotfiles/gitconfig"} {
		must.Do(t, os.Symlink(to, name))
	}
	got := placesByLink(at(home))
	if want := []string{profiles + "/led.yaml", home + "/.gitconfig"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
