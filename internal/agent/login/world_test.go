package login

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/secret/broker"
)

// world is a user's ~/.claude and some instances.
type world struct {
	t   *testing.T
	top string
}

func newWorld(t *testing.T, host string) world {
	t.Helper()
	top := must.Folder(t)
	w := world{t, top}
	for _, dir := range []string{".claude", "a/.claude", "b/.claude"} {
		must.Do(t, os.MkdirAll(w.path(dir), 0o700))
	}
	w.write(hostFile, host)
	return w
}

func (w world) path(name string) string { return filepath.Join(w.top, name) }

func (w world) write(name, content string) {
	w.t.Helper()
	must.Write(w.t, w.path(name+".new"), content)
	must.Do(w.t, os.Rename(w.path(name+".new"), w.path(name)))
}

func (w world) read(name string) string {
	content, err := os.ReadFile(w.path(name))
	if err != nil {
		return err.Error()
	}
	return string(content)
}

func (w world) exists(name string) bool {
	_, err := os.Lstat(w.path(name))
	return err == nil
}

// numbered is a file with the n-th login, which has expired.
func numbered(n int) string {
	return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"a%d","refreshToken":"r%d","expiresAt":1700000000000,"scopes":["user:inference"]},"kept":true}`, n, n)
}

const (
	hostFile = ".claude/" + FileName
	insideA  = "a/.claude/" + FileName
	insideB  = "b/.claude/" + FileName
	hostLock = ".claude/" + refreshLock
	ended    = `{"claudeAiOauth":{"accessToken":"","refreshToken":"","expiresAt":0}}`
)

// holds reports whether a file has the n-th login.
func (w world) holds(file string, n int) func() bool {
	return func() bool { return strings.Contains(w.read(file), fmt.Sprintf(`"refreshToken":"r%d"`, n)) }
}

func (w world) mustHold(file string, n int) {
	w.t.Helper()
	if !w.holds(file, n)() {
		w.t.Errorf("%s does not hold login %d: %s", file, n, w.read(file))
	}
}

// What an agent may have left in place of its credentials gives way to a
// placeholder, and nothing comes of it outside.
func TestHostileCopiesNeverReachTheUser(t *testing.T) {
	for name, plant := range map[string]func(w world){
		"truncated":           func(w world) { w.write(insideA, numbered(2)[:70]) },
		"empty":               func(w world) { w.write(insideA, "") },
		"another shape":       func(w world) { w.write(insideA, `{"claudeAiOauth":{"accessToken":["x"],"refreshToken":"y"}}`) },
		"control characters":  func(w world) { w.write(insideA, strings.Replace(numbered(2), `"a2"`, `"a\u0007"`, 1)) },
		"ten megabytes":       func(w world) { w.write(insideA, numbered(2)+strings.Repeat(" ", 10<<20)) },
		"without its renewer": func(w world) { w.write(insideA, strings.Replace(numbered(2), `"r2"`, `""`, 1)) },
		"removed":             func(w world) { must.Do(w.t, os.Remove(w.path(insideA))) },
		"a link to another file": func(w world) {
			w.write("elsewhere", numbered(2))
			must.Do(w.t, os.Remove(w.path(insideA)))
			must.Do(w.t, os.Symlink(w.path("elsewhere"), w.path(insideA)))
		},
		"a pipe": func(w world) {
			must.Do(w.t, os.Remove(w.path(insideA)))
			must.Do(w.t, syscall.Mkfifo(w.path(insideA), 0o600))
		},
		"a folder": func(w world) {
			must.Do(w.t, os.Remove(w.path(insideA)))
			must.Do(w.t, os.MkdirAll(w.path(insideA+"/x"), 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := guarded(t)
			g := w.guard("a", e)
			defer g.Close()
			users := w.read(hostFile)
			plant(w)
			must.Do(t, g.GiveInside())
			if got := w.read(hostFile); got != users {
				t.Errorf("the user's file is %.200q", got)
			}
			if got := w.read(insideA); !strings.Contains(got, "cbx") || strings.Contains(got, `"accessToken":"a`) || strings.Contains(w.read("elsewhere"), "cbx") {
				t.Errorf("inside is %s", got)
			}
		})
	}
}

// A login that was made inside is the user's after their word, and the guards of
// all projects go on with it.
func TestALoginThatWasMadeInsideIsTakenByItsUser(t *testing.T) {
	w, e := guarded(t)
	if err := Take(w.path("a"), w.path(hostFile)); !errors.Is(err, errNoneMade) {
		t.Errorf("none was made: %v", err)
	}
	mine, other := w.guard("a", e), w.guard("b", e)
	defer mine.Close()
	defer other.Close()
	must.Do(t, mine.Keep(broker.Grant{Access: "a9", Refresh: "r9", Scope: "user:inference", Expires: time.Now().Add(time.Hour)}))
	var first, second follower
	mine.Begin(first.tell)
	other.Begin(second.tell)
	must.Do(t, Take(w.path("a"), w.path(hostFile)))
	w.mustHold(hostFile, 9)
	if w.exists("a/"+MadeName) || w.exists(hostLock) || !strings.Contains(w.read(hostFile), `"kept":true`) {
		t.Errorf("the user's is %s", w.read(hostFile))
	}
	must.Await(w.t, "the other project uses it", func() bool { return second.has("a9")() })
	must.Await(w.t, "the guard has noticed", func() bool { return !mine.Made() })
	must.Do(t, os.Remove(w.path(hostFile))) // one who was never logged in outside
	must.Do(t, mine.Keep(broker.Grant{Access: "a8", Refresh: "r8", Expires: time.Now().Add(time.Hour)}))
	must.Do(t, Take(w.path("a"), w.path(hostFile)))
	w.mustHold(hostFile, 8)
}

// Made reports whether the login is one that was made inside.
func (g *Guard) Made() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.from == g.made
}
