package state_test

import (
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent/state"

	"golang.org/x/sys/unix"
)

// agentsLink makes a link as an agent would. Where the tests are root's it is
// given away, as links of root count.
func (w world) agentsLink(target, name string) {
	w.t.Helper()
	must.Do(w.t, os.Symlink(target, w.path(name)))
	if os.Getuid() == 0 {
		must.Do(w.t, os.Lchown(w.path(name), 1000, 1000))
	}
}

func TestALinkThatAnAgentMadeLeadsToNothingOfTheUsers(t *testing.T) {
	for name, prepare := range map[string]func(w world){
		"behind the user's link to the file": func(w world) {
			must.Do(t, os.Symlink("../dotfiles/CLAUDE.md", w.path(".claude/CLAUDE.md")))
			w.agentsLink("../secret", "dotfiles/CLAUDE.md")
		},
		"in a folder that the user's link leads to": func(w world) {
			must.Do(t, os.Remove(w.path(".claude")))
			must.Do(t, os.Symlink("dotfiles", w.path(".claude")))
			w.agentsLink(w.path("secret"), "dotfiles/CLAUDE.md")
		},
		"as a folder on the way": func(w world) {
			must.Do(t, os.Symlink(w.path("dotfiles/deep/CLAUDE.md"), w.path(".claude/CLAUDE.md")))
			w.write("other/CLAUDE.md", "secret")
			w.agentsLink("../other", "dotfiles/deep")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("secret", "secret")
			must.Do(t, os.MkdirAll(w.path(".claude"), 0o700))
			must.Do(t, os.MkdirAll(w.path("dotfiles"), 0o700))
			prepare(w)
			in := w.session(w.request())
			if got := w.read(rel(w, in.Dir) + "/.claude/CLAUDE.md"); got == "secret" {
				t.Error("the secret is inside")
			}
			if !strings.Contains(said(in), "CLAUDE.md does not enter") {
				t.Errorf("nothing is said: %q", said(in))
			}
			const way = "where ~/.claude is a folder, and no link, links in it are followed"
			if strings.Contains(said(in), way) != strings.Contains(name, "the user's link leads to") {
				t.Errorf("of the way in is said: %q", said(in))
			}
		})
	}
}

func TestAFolderBehindALinkThatAnAgentMadeIsNotImported(t *testing.T) {
	w := newWorld(t)
	w.write("secrets/secret", "secret")
	must.Do(t, os.MkdirAll(w.path(".claude"), 0o700))
	must.Do(t, os.MkdirAll(w.path("dotfiles"), 0o700))
	must.Do(t, os.Symlink("../dotfiles/skills", w.path(".claude/skills")))
	w.agentsLink("../secrets", "dotfiles/skills")
	in := w.session(w.request())
	if len(in.Imports) > 0 {
		t.Errorf("got %+v", in.Imports)
	}
}

func TestAFileOfTheUsersThatIsAPipeHangsNothing(t *testing.T) {
	w := newWorld(t)
	must.Do(t, os.MkdirAll(w.path(".claude"), 0o700))
	must.Do(t, unix.Mkfifo(w.path(".claude/CLAUDE.md"), 0o600))
	if _, err := state.Look(w.request()); err == nil {
		t.Error("a pipe is taken for a file")
	}
}
