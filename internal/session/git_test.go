package session

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"claudebox/internal/session/gituse"
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
