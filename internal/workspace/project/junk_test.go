package project_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// kinds are what an agent can put at a path.
var kinds = map[string]func(w world, at string){
	"a folder":                         func(w world, at string) { w.mkdir(at) },
	"a full folder":                    func(w world, at string) { w.write(at+"/config", "x"); w.write(at+"/HEAD", "ref: refs/x") },
	"a closed folder":                  func(w world, at string) { w.mkdir(at); must.Do(w.t, os.Chmod(w.path(at), 0)) },
	"a closed file":                    func(w world, at string) { w.write(at, "x"); must.Do(w.t, os.Chmod(w.path(at), 0)) },
	"a folder that can only be listed": func(w world, at string) { w.mkdir(at); must.Do(w.t, os.Chmod(w.path(at), 0o444)) },
	"a pipe":                           func(w world, at string) { must.Do(w.t, syscall.Mkfifo(w.path(at), 0o600)) },
	"a socket":                         func(w world, at string) { must.Do(w.t, syscall.Mknod(w.path(at), syscall.S_IFSOCK|0o600, 0)) },
	"a link":                           func(w world, at string) { w.link("../x", at) },
	"a link to itself":                 func(w world, at string) { w.link(filepath.Base(at), at) },
	"a link to a folder":               func(w world, at string) { w.link(".", at) },
	"a link far":                       func(w world, at string) { w.link(strings.Repeat("x/", 2000), at) },
	"a huge file":                      func(w world, at string) { w.write(at, ""); must.Do(w.t, os.Truncate(w.path(at), 1<<40)) },
	"no text":                          func(w world, at string) { w.write(at, "\x00\xff[[\n\x1b]0;") },
	"a .git file":                      func(w world, at string) { w.write(at, "gitdir: "+strings.Repeat("../", 99)+"etc\n") },
	"a folder of links": func(w world, at string) {
		w.link("..", at+"/config")
		w.link("../..", at+"/modules")
		w.write(at+"/HEAD", "ref: refs/x")
	},
}

// junkPlaces are where something is looked at before a session.
var junkPlaces = []string{
	".git/config", ".git/config.worktree", ".git/hooks", ".git/info", ".git/info/attributes", ".git/modules", ".git/modules/s", ".git/modules/s/config",
	".git/modules/s/claudebox-aside", ".git/worktrees", ".git/worktrees/l", ".git/worktrees/l/gitdir", ".git/rebase-merge", ".git/logs", ".git/logs/HEAD",
	".git/FETCH_HEAD", ".git/objects/info/alternates", ".git/index", ".git/HEAD", ".git/lfs", ".git/remotes", ".git/config.bak", ".git/claudebox-aside", ".git/lazygit.yml",
	"n/.git", "n/.git/config", "n/.git/modules", "b.git/config", "b.git/hooks", "b.git/modules", "config", "HEAD", "node_modules", "node_modules/x/.git/config",
	".env", ".envrc", ".vscode", ".claude", ".claude/settings.json", ".claudebox.yaml", ".gitattributes", "d", "id_rsa", ".direnv", ".venv",
}

// TestNothingThatAnAgentLeavesStopsTheNextLaunch puts everything everywhere. Two
// refusals remain, both of what the review takes out, and with a way out: a .git
// of the project that is a link, and a commondir.
func TestNothingThatAnAgentLeavesStopsTheNextLaunch(t *testing.T) {
	for i, place := range junkPlaces {
		for j, kind := range slices.Sorted(maps.Keys(kinds)) {
			if os.Getenv("CLAUDEBOX_LONG") == "" && (i+j)%5 != 0 {
				continue // a fifth of them; checks/long tries all
			}
			put := kinds[kind]
			t.Run(kind+" at "+place, func(t *testing.T) {
				w := newWorld(t)
				for _, git := range []string{".git", ".git/modules/s", "n/.git", "b.git", "node_modules/x/.git"} {
					w.plainRepo("p/" + git)
				}
				w.write("p/.git/worktrees/l/gitdir", w.path("l/.git\n"))
				w.write("p/.git/worktrees/l/commondir", "../..\n")
				t.Cleanup(func() { openAll(w.path("p")) })
				must.Do(t, os.RemoveAll(w.path("p/"+place)))
				must.Do(t, os.MkdirAll(filepath.Dir(w.path("p/"+place)), 0o755))
				put(w, "p/"+place)
				p, err := project.Open(w.request("p"))
				must.Do(t, err)
				must.Do(t, os.MkdirAll(w.path(".claudebox"), 0o700))
				s, err := aftermath.Begin(w.path(".claudebox"), p, aftermath.Agent{})
				must.Do(t, err)
				for _, fault := range s.End().Failures {
					if !strings.Contains(fault, "closed") {
						t.Error(fault)
					}
				}
			})
		}
	}
}

// plainRepo makes what git takes for a repository, without git.
func (w world) plainRepo(at string) {
	w.write(at+"/HEAD", "ref: refs/heads/main\n")
	w.write(at+"/config", "[core]\n\trepositoryformatversion = 0\n")
	for _, name := range []string{"objects", "refs", "hooks", "info"} {
		w.mkdir(at + "/" + name)
	}
}

func openAll(dir string) {
	filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			os.Chmod(name, 0o755)
		}
		return nil
	})
}

func TestManySecretsDoNotStopALaunch(t *testing.T) {
	w := newWorld(t)
	for n := range 1500 {
		w.write(fmt.Sprintf("p/.env.%d", n), "A=b")
	}
	if got := len(w.open("p").Hidden); got != 1500 {
		t.Errorf("%d are hidden", got)
	}
}

// F15: a session makes more small files than are read, with names that come first.
func TestManySmallFilesDoNotHideANewToken(t *testing.T) {
	w := newWorld(t)
	for n := range 1100 {
		w.write(fmt.Sprintf("p/aaa/%d.txt", n), "nothing is in this file\n")
		must.Do(t, os.Chtimes(w.path(fmt.Sprintf("p/aaa/%d.txt", n)), time.Now(), time.Now().Add(time.Hour)))
	}
	time.Sleep(20 * time.Millisecond) // kernels before 6.13 count the time of change in ticks
	w.write("p/notes.txt", "ghp_Zq3vX8nT5kLw1RbY7mHc2DfJ9sGa4PeU6oKi\n")
	p := w.open("p")
	if !slices.Equal(p.Hidden, []string{"notes.txt"}) || !strings.Contains(notes(p), "more than 1000 small files") {
		t.Errorf("hidden are %q; notes %q", p.Hidden, notes(p))
	}
}
