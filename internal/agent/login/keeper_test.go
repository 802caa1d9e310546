package login

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/internal/linux/alone"
)

// world is a user's ~/.claude and some instances.
type world struct {
	t   *testing.T
	top string
}

func newWorld(t *testing.T, host string) world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	w := world{t, top}
	for _, dir := range []string{".claude", "a/.claude", "b/.claude"} {
		must(t, os.MkdirAll(w.path(dir), 0o700))
	}
	w.write(".claude/"+FileName, host)
	return w
}

func (w world) path(name string) string { return filepath.Join(w.top, name) }

func (w world) write(name, content string) {
	w.t.Helper()
	must(w.t, os.WriteFile(w.path(name+".new"), []byte(content), 0o600))
	must(w.t, os.Rename(w.path(name+".new"), w.path(name)))
}

func (w world) read(name string) string {
	content, err := os.ReadFile(w.path(name))
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// keeper lends the login to an instance.
func (w world) keeper(instance string) *Keeper {
	w.t.Helper()
	k, err := Open(Place{Host: w.path(".claude/" + FileName), Accounts: w.path(".claude.json"), Instance: w.path(instance)})
	must(w.t, err)
	must(w.t, k.Lend())
	return k
}

// until waits for what must come. The time only bounds a hang.
func (w world) until(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

func (w world) exists(name string) bool {
	_, err := os.Lstat(w.path(name))
	return err == nil
}

// numbered is a file with the n-th login, which has expired: so the watch
// begins at once.
func numbered(n int) string {
	return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"a%d","refreshToken":"r%d","expiresAt":1700000000000,"scopes":["user:inference"]},"kept":true}`, n, n)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	hostFile    = ".claude/" + FileName
	insideA     = "a/.claude/" + FileName
	insideB     = "b/.claude/" + FileName
	hostLock    = ".claude/" + refreshLock
	insideALock = "a/.claude/" + refreshLock
	insideBLock = "b/.claude/" + refreshLock
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

func TestOneRenewalReachesEverybody(t *testing.T) {
	w := newWorld(t, numbered(1))
	a, b := w.keeper("a"), w.keeper("b")
	a.Watch()
	b.Watch()
	w.mustHold(insideA, 1)

	must(t, os.Mkdir(w.path(insideALock), 0o755)) // as Claude Code does in a
	w.until("the user's lock is held", func() bool { return w.exists(hostLock) })
	w.until("the other sandbox's lock is held", func() bool { return w.exists(insideBLock) })
	w.write(insideA, numbered(2))
	w.until("the user has the new login", w.holds(hostFile, 2))
	w.until("the other sandbox has it", w.holds(insideB, 2))
	if !w.exists(hostLock) || !w.exists(insideBLock) {
		t.Error("a lock was given back before Claude Code gave back its own")
	}
	must(t, os.Remove(w.path(insideALock)))
	w.until("all locks are free", func() bool { return !w.exists(hostLock) && !w.exists(insideBLock) })

	must(t, os.Mkdir(w.path(hostLock), 0o755)) // as Claude Code does outside
	w.until("both sandboxes wait", func() bool { return w.exists(insideALock) && w.exists(insideBLock) })
	w.write(hostFile, numbered(3))
	must(t, os.Remove(w.path(hostLock)))
	w.until("both have the new login and go on", func() bool {
		return w.holds(insideA, 3)() && w.holds(insideB, 3)() && !w.exists(insideALock) && !w.exists(insideBLock)
	})
	for _, k := range []*Keeper{a, b} {
		if _, err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	w.mustHold(hostFile, 3)
}

// When two renew at the very same time one of them is refused, and empties its
// login. It gets the other's.
func TestTheLoserOfARaceIsNotLoggedOut(t *testing.T) {
	w := newWorld(t, numbered(1))
	a, b := w.keeper("a"), w.keeper("b")
	must(t, os.Mkdir(w.path(insideALock), 0o755))
	must(t, os.Mkdir(w.path(insideBLock), 0o755))
	a.Watch()
	b.Watch()
	w.write(insideB, `{"claudeAiOauth":{"accessToken":"","refreshToken":"","expiresAt":0}}`)
	w.write(insideA, numbered(2))
	w.until("both have the new login", func() bool { return w.holds(hostFile, 2)() && w.holds(insideB, 2)() })
	for _, k := range []*Keeper{a, b} {
		if _, err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRenewedWhileClaudeboxWasDeadReachesTheUser(t *testing.T) {
	w := newWorld(t, numbered(1))
	w.keeper("a") // and never closed
	w.write(insideA, numbered(2))
	notes, err := w.keeper("a").Close()
	must(t, err)
	w.mustHold(hostFile, 2)
	if len(notes) != 1 || !strings.Contains(notes[0], "renewed inside") {
		t.Errorf("said %q", notes)
	}
	for _, entries := range []string{".claude/.credentials.json.*", ".claude/..credentials*", "a/*.new"} {
		if left, _ := filepath.Glob(w.path(entries)); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	if info, err := os.Stat(w.path(hostFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if !strings.Contains(w.read(hostFile), `"kept":true`) {
		t.Errorf("lost: %s", w.read(hostFile))
	}
}

// What an agent may leave in its copy, and what must not come of it outside.
func TestHostileCopiesNeverReachTheUser(t *testing.T) {
	for name, plant := range map[string]func(w world){
		"truncated":           func(w world) { w.write(insideA, numbered(2)[:70]) },
		"empty":               func(w world) { w.write(insideA, "") },
		"another shape":       func(w world) { w.write(insideA, `{"claudeAiOauth":{"accessToken":["x"],"refreshToken":"y"}}`) },
		"control characters":  func(w world) { w.write(insideA, strings.Replace(numbered(2), `"a2"`, `"a\u0007"`, 1)) },
		"ten megabytes":       func(w world) { w.write(insideA, numbered(2)+strings.Repeat(" ", 10<<20)) },
		"without its renewer": func(w world) { w.write(insideA, strings.Replace(numbered(2), `"r2"`, `""`, 1)) },
		"emptied, as when it is revoked": func(w world) {
			w.write(insideA, `{"claudeAiOauth":{"accessToken":"","refreshToken":"","expiresAt":0}}`)
		},
		"removed":    func(w world) { must(w.t, os.Remove(w.path(insideA))) },
		"unreadable": func(w world) { w.write(insideA, numbered(2)); must(w.t, os.Chmod(w.path(insideA), 0)) },
		"a link to another file": func(w world) {
			w.write("elsewhere", numbered(2))
			must(w.t, os.Remove(w.path(insideA)))
			must(w.t, os.Symlink(w.path("elsewhere"), w.path(insideA)))
		},
		"a pipe": func(w world) {
			must(w.t, os.Remove(w.path(insideA)))
			must(w.t, syscall.Mkfifo(w.path(insideA), 0o600))
		},
		"another account's": func(w world) {
			w.write(".claude.json", `{"oauthAccount":{"accountUuid":"one"}}`)
			w.write("a/.claude/.claude.json", `{"oauthAccount":{"accountUuid":"two"}}`)
			w.write(insideA, numbered(2))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "unreadable" && os.Getuid() == 0 {
				t.Skip("root reads everything; checks/test runs this as an ordinary user")
			}
			w := newWorld(t, numbered(1))
			k := w.keeper("a")
			plant(w)
			if _, err := k.Close(); err != nil {
				t.Error(err)
			}
			if got := w.read(hostFile); got != numbered(1) {
				t.Errorf("the user's file is %.200q", got)
			}
			again := w.keeper("a")
			_, err := again.Close()
			must(t, err)
			if got := w.read(hostFile); got != numbered(1) {
				t.Errorf("after another launch the user's file is %.200q", got)
			}
		})
	}
}

// Another account's login stays inside, whatever becomes of the user's.
func TestAnotherAccountInsideIsItsOwnFromThenOn(t *testing.T) {
	w := newWorld(t, strings.Replace(numbered(1), `"scopes"`, `"accountUuid":"one","scopes"`, 1))
	k := w.keeper("a")
	w.write(insideA, strings.Replace(numbered(2), `"scopes"`, `"accountUuid":"two","scopes"`, 1))
	notes, err := k.Close()
	must(t, err)
	if len(notes) != 1 || !strings.Contains(notes[0], "another account") {
		t.Errorf("said %q", notes)
	}
	w.write(hostFile, strings.Replace(numbered(3), `"scopes"`, `"accountUuid":"one","scopes"`, 1))
	_, err = w.keeper("a").Close()
	must(t, err)
	w.mustHold(insideA, 2)
	w.mustHold(hostFile, 3)
}

func TestLinkedOrHeldLocksInsideDoNotStopAnything(t *testing.T) {
	w := newWorld(t, numbered(1))
	k := w.keeper("a")
	must(t, os.Symlink(w.path("gone"), w.path(insideALock)))
	must(t, os.Mkdir(w.path("a/.claude/"+writeLock), 0o700)) // the agent holds it for ever
	k.Watch()
	w.write(hostFile, numbered(2))
	w.until("the new login is inside", w.holds(insideA, 2))
	_, err := k.Close()
	must(t, err)
	if w.exists("gone") || w.exists(hostLock) {
		t.Error("something was made through a link, or a lock was left")
	}
}

func TestNothingIsWrittenWhenNothingIsNew(t *testing.T) {
	w := newWorld(t, numbered(1))
	_, err := w.keeper("a").Close()
	must(t, err)
	before := map[string]os.FileInfo{}
	for _, name := range []string{hostFile, insideA, "a/" + RecordName} {
		info, err := os.Stat(w.path(name))
		must(t, err)
		before[name] = info
	}
	_, err = w.keeper("a").Close()
	must(t, err)
	for name, was := range before {
		if now, err := os.Stat(w.path(name)); err != nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) {
			t.Errorf("%s was written anew: %v", name, err)
		}
	}
	if strings.Contains(w.read("a/"+RecordName), "r1") {
		t.Errorf("the record holds a secret: %s", w.read("a/"+RecordName))
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	if !alone.In(t, nil) {
		return
	}
	w := newWorld(t, numbered(1))
	k := w.keeper("a")
	w.write(insideA, numbered(2))
	alone.WithRoom(t, 0, func() {
		if _, err := k.Close(); err == nil {
			t.Error("no error")
		}
	})
	if got := w.read(hostFile); got != numbered(1) {
		t.Errorf("the user's file is %q", got)
	}
	if left, _ := os.ReadDir(w.path(".claude")); len(left) != 1 {
		t.Errorf("left in ~/.claude: %v", left)
	}
	_, err := w.keeper("a").Close()
	must(t, err)
	w.mustHold(hostFile, 2)
}

// Claude Code writes the tokens of a login first, and then whose they are: in
// between they look like the user's own.
func TestALoginOfSomebodyElseIsHalfWrittenWhenItIsLookedAt(t *testing.T) {
	account := func(n int) string { return fmt.Sprintf(`{"oauthAccount":{"accountUuid":"account-%d"}}`, n) }
	w := newWorld(t, numbered(1))
	w.write(".claude.json", account(1))
	w.write("a/.claude/.claude.json", account(1))
	k := w.keeper("a")
	k.Watch()
	w.until("the watch", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.watch != nil
	})
	w.write("a/.claude/"+FileName, numbered(2))
	time.Sleep(settled / 4) // more than it takes to see that
	w.write("a/.claude/.claude.json", account(2))
	_, err := k.Close()
	must(t, err)
	w.mustHold(".claude/"+FileName, 1)
}
