package state_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/agent/state"
)

// tampered are things that an agent, or somebody, may have done to an
// instance's folders.
var tampered = map[string]struct {
	do   func(t *testing.T, w world, dir string)
	want string
}{
	"the instance is a link": {func(t *testing.T, w world, dir string) {
		must.Do(t, os.Rename(dir, w.path("elsewhere")))
		must.Do(t, os.Symlink(w.path("elsewhere"), dir))
	}, "not a real folder"},
	"the agent's home is a link": {func(t *testing.T, w world, dir string) {
		must.Do(t, os.Rename(dir+"/.claude", w.path("elsewhere")))
		must.Do(t, os.Symlink(w.path("elsewhere"), dir+"/.claude"))
	}, "not a real folder"},
	"the agent's home is a file": {func(t *testing.T, _ world, dir string) {
		must.Do(t, os.RemoveAll(dir+"/.claude"))
		must.Write(t, dir+"/.claude", "")
	}, "not a real folder"},
	"the instance can be written by others": {func(t *testing.T, _ world, dir string) {
		must.Do(t, os.Chmod(dir, 0o775))
	}, "mode is 775"},
	"the folder of instances is a link": {func(t *testing.T, w world, dir string) {
		must.Do(t, os.Rename(filepath.Dir(dir), w.path("elsewhere")))
		must.Do(t, os.Symlink(w.path("elsewhere"), filepath.Dir(dir)))
	}, "not a real folder"},
	"CLAUDEBOX_HOME can be written by others": {func(t *testing.T, w world, _ string) {
		must.Do(t, os.Chmod(w.path(".claudebox"), 0o777))
	}, "not writable by others"},
}

func TestTamperedInstancesAreRefused(t *testing.T) {
	for name, tc := range tampered {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.session(w.request())
			tc.do(t, w, in.Dir)
			_, err := state.Look(w.request())
			wantRefusal(t, err, tc.want, "")
		})
	}
}

// D30: `chmod 755 ~/.claudebox/instances` refused each launch.
func TestAModeThatOnlyLetOthersLookIsMendedAndSaidOnce(t *testing.T) {
	w := newWorld(t)
	dir := w.session(w.request()).Dir
	for name, mode := range map[string]os.FileMode{dir: 0o755, filepath.Dir(dir): 0o711} {
		must.Do(t, os.Chmod(name, mode))
		in, err := state.Look(w.request())
		if err != nil || len(in.Mended) != 1 || !strings.HasPrefix(in.Mended[0], name+" had the mode ") {
			t.Errorf("%s: %v, %q", name, err, in.Mended)
		}
		if at, err := os.Stat(name); err != nil || at.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, at.Mode(), err)
		}
		if in, err := state.Look(w.request()); err != nil || len(in.Mended) != 0 {
			t.Errorf("%s again: %v, %q", name, err, in.Mended)
		}
	}
}

// A2: what an agent can do to the modes of its own home, nobody has to mend.
func TestAnAgentsHomeThatWasClosedIsOpened(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o100, 0o500, 0o777} {
		w := newWorld(t)
		in := w.session(w.request())
		must.Do(t, os.Chmod(in.Dir+"/.claude/.claude.json", mode))
		must.Do(t, os.Chmod(in.Dir+"/cache/"+w.request().Caches[0], mode))
		must.Do(t, os.Chmod(in.Dir+"/.claude", mode))
		in = w.session(w.request())
		if answers := answers(t, in, ".claude.json"); answers["hasCompletedOnboarding"] != true {
			t.Errorf("%o: the answers are %v", mode, answers)
		}
		for _, name := range []string{"/.claude", "/cache/" + w.request().Caches[0]} {
			if at, err := os.Stat(in.Dir + name); err != nil || at.Mode().Perm()&0o700 != 0o700 {
				t.Errorf("%o: %s is %v, %v", mode, name, at.Mode(), err)
			}
		}
	}
}

func TestSomebodyElsesHomeIsRefused(t *testing.T) {
	w := newWorld(t)
	w.session(w.request())
	req := w.request()
	req.UID++
	_, err := state.Look(req)
	wantRefusal(t, err, "must be yours", "CLAUDEBOX_HOME")
}

// planted are things an agent may have put where a file of ours belongs.
var planted = map[string]func(t *testing.T, w world, at string){
	"a link to a file of the user": func(t *testing.T, w world, at string) {
		must.Do(t, os.Symlink(w.path("victim"), at))
	},
	"a link to nothing": func(t *testing.T, w world, at string) {
		must.Do(t, os.Symlink(w.path("made-through-the-link"), at))
	},
	"a hard link to a file of the user": func(t *testing.T, w world, at string) {
		must.Do(t, os.Link(w.path("victim"), at))
	},
	"a pipe": func(t *testing.T, _ world, at string) {
		must.Do(t, syscall.Mkfifo(at, 0o600))
	},
	"a folder": func(t *testing.T, _ world, at string) {
		must.Do(t, os.MkdirAll(at+"/x", 0o700))
	},
	"no JSON": func(t *testing.T, _ world, at string) {
		must.Write(t, at, "{")
	},
	"JSON of another shape": func(t *testing.T, _ world, at string) {
		must.Write(t, at, `{"projects":[],"customApiKeyResponses":3}`)
	},
}

func TestPlantedFilesAreReplacedAndLeadNowhere(t *testing.T) {
	for name, plant := range planted {
		for _, file := range []string{".claude.json", "settings.json", "CLAUDE.md", "keybindings.json", ".credentials.json", "agents"} {
			t.Run(name+" at "+file, func(t *testing.T) {
				w := newWorld(t)
				w.write("victim", "victim")
				w.write(".claude/keybindings.json", "{}")
				w.write(".claude/agents/a.md", "a")
				w.write(".claude/.credentials.json", `{"claudeAiOauth":{"accessToken":"t","expiresAt":2}}`)
				in := w.session(w.request())
				at := filepath.Join(in.Dir, ".claude", file)
				must.Do(t, os.Remove(at))
				plant(t, w, at)
				w.session(w.request())
				if got := w.read("victim"); got != "victim" {
					t.Errorf("a file of the user now holds %q", got)
				}
				if _, err := os.Lstat(w.path("made-through-the-link")); err == nil {
					t.Error("a file was made through a link")
				}
				info, err := os.Lstat(at)
				must.Do(t, err)
				if isLink := info.Mode()&os.ModeSymlink != 0; isLink != (file == "agents") || info.IsDir() {
					t.Errorf("%s is %v", file, info.Mode())
				}
			})
		}
	}
}
