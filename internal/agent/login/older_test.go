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

	"claudebox/checks/alone"
	"claudebox/internal/secret/broker"
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
	w.write(hostFile, host)
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

// numbered is a file with the n-th login, which has expired.
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

// lent says that an older version lent the n-th login to an instance; 0: none.
func (w world) lent(n int) {
	if l, _, err := parse([]byte(numbered(n))); n > 0 && err == nil {
		w.write("a/"+RecordName, fmt.Sprintf(`{"base":%q,"expires":1700000000000}`, l.sum()))
	}
}

func (w world) takeOut() (notes []string, err error) {
	return TakeOut(Place{Host: w.path(hostFile), Accounts: w.path(".claude.json"), Instance: w.path("a")}, broker.NewKey())
}

// What older versions left inside is outside after it, at the user's where they
// have lost theirs by it.
func TestWhatOlderVersionsLeftIsTakenOut(t *testing.T) {
	for name, tc := range map[string]struct {
		host, inside string
		base         int // of what was lent
		account      bool
		want         int // the user's, after; 0: what it was
		own          bool
	}{
		"as it was lent":                            {host: numbered(1), inside: numbered(1), base: 1},
		"renewed inside":                            {host: numbered(1), inside: numbered(2), base: 1, want: 2},
		"renewed outside":                           {host: numbered(2), inside: numbered(1), base: 1},
		"both are new: the user's counts":           {host: numbered(3), inside: numbered(2), base: 1},
		"renewed inside, of another account":        {host: numbered(1), inside: numbered(2), base: 1, account: true, own: true},
		"ended outside, for it was renewed inside":  {host: ended, inside: numbered(2), base: 1, want: 2},
		"ended outside, of another account":         {host: ended, inside: numbered(2), base: 1, account: true, own: true},
		"ended outside and the same inside":         {host: ended, inside: numbered(1), base: 1},
		"ended at both":                             {host: ended, inside: ended, base: 1},
		"logged out outside: that is not undone":    {host: "{}", inside: numbered(2), base: 1},
		"a broken file outside":                     {host: "{", inside: numbered(2), base: 1},
		"made inside":                               {host: numbered(1), inside: numbered(9), own: true},
		"made inside, and nobody logged in outside": {host: "{}", inside: numbered(9), own: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.host)
			w.write(insideA, strings.Replace(tc.inside, "}}", `},"mcpOAuth":{"its":"own"}}`, 1))
			w.lent(tc.base)
			if tc.account {
				w.write(".claude.json", `{"oauthAccount":{"accountUuid":"one"}}`)
				w.write("a/.claude/.claude.json", `{"oauthAccount":{"accountUuid":"two"}}`)
			}
			_, err := w.takeOut()
			must(t, err)
			if tc.want == 0 && w.read(hostFile) != tc.host {
				t.Errorf("the user's is %s", w.read(hostFile))
			} else if tc.want != 0 {
				w.mustHold(hostFile, tc.want)
			}
			if got := w.read(insideA); strings.Contains(got, "accessToken\":\"a") || tc.inside != ended && strings.Contains(tc.inside, "kept") && !strings.Contains(got, "kept") {
				t.Errorf("inside is %s", got)
			}
			if tc.own != w.exists("a/"+MadeName) || w.exists("a/"+RecordName) || w.exists(hostLock) {
				t.Errorf("its own: %s", w.read("a/"+MadeName))
			}
			before := w.read(insideA)
			if notes, err := w.takeOut(); err != nil || len(notes) > 0 || w.read(insideA) != before {
				t.Errorf("again: %q, %v, %s", notes, err, w.read(insideA))
			}
		})
	}
}

// What an agent may have left in its copy, and what must not come of it outside.
func TestHostileCopiesNeverReachTheUser(t *testing.T) {
	for name, plant := range map[string]func(w world){
		"truncated":           func(w world) { w.write(insideA, numbered(2)[:70]) },
		"empty":               func(w world) { w.write(insideA, "") },
		"another shape":       func(w world) { w.write(insideA, `{"claudeAiOauth":{"accessToken":["x"],"refreshToken":"y"}}`) },
		"control characters":  func(w world) { w.write(insideA, strings.Replace(numbered(2), `"a2"`, `"a\u0007"`, 1)) },
		"ten megabytes":       func(w world) { w.write(insideA, numbered(2)+strings.Repeat(" ", 10<<20)) },
		"without its renewer": func(w world) { w.write(insideA, strings.Replace(numbered(2), `"r2"`, `""`, 1)) },
		"removed":             func(w world) { must(w.t, os.Remove(w.path(insideA))) },
		"a link to another file": func(w world) {
			w.write("elsewhere", numbered(2))
			must(w.t, os.Remove(w.path(insideA)))
			must(w.t, os.Symlink(w.path("elsewhere"), w.path(insideA)))
		},
		"a pipe": func(w world) {
			must(w.t, os.Remove(w.path(insideA)))
			must(w.t, syscall.Mkfifo(w.path(insideA), 0o600))
		},
		"a folder": func(w world) {
			must(w.t, os.Remove(w.path(insideA)))
			must(w.t, os.MkdirAll(w.path(insideA+"/x"), 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, numbered(1))
			w.write(insideA, numbered(1))
			w.lent(1)
			plant(w)
			if _, err := w.takeOut(); err != nil {
				t.Error(err)
			}
			if got := w.read(hostFile); got != numbered(1) {
				t.Errorf("the user's file is %.200q", got)
			}
			if got, err := os.ReadFile(w.path(insideA)); err == nil && string(got) != `{"kept":true}` {
				t.Errorf("inside is %s", got)
			}
		})
	}
}

func TestAKeyThatClaudeCodeMadeInsideIsTakenOut(t *testing.T) {
	w := newWorld(t, numbered(1))
	w.write("a/.claude/.claude.json", `{"primaryApiKey":"sk-ant-api03-x","kept":1}`)
	notes, err := w.takeOut()
	if got := w.read("a/.claude/.claude.json"); err != nil || got != `{"kept":1}` || len(notes) != 1 {
		t.Errorf("%s, %q, %v", got, notes, err)
	}
}

func TestAKeyBesidePlaceholdersIsTakenOutAndTheyAreNotTakenForALogin(t *testing.T) {
	w, e := guarded(t)
	w.guard("a", e).Close()
	w.write("a/.claude/.claude.json", `{"primaryApiKey":"sk-ant-api03-x","kept":1}`)
	notes, err := w.takeOut()
	if got := w.read("a/.claude/.claude.json"); err != nil || got != `{"kept":1}` || len(notes) != 1 {
		t.Errorf("%s, %q, %v", got, notes, err)
	}
	if w.exists("a/" + MadeName) {
		t.Errorf("a placeholder is kept as a login: %s", w.read("a/"+MadeName))
	}
}

func TestPlaceholdersAreNotTakenForALogin(t *testing.T) {
	w, e := guarded(t)
	g := w.guard("a", e)
	before := w.read(insideA)
	if notes, err := w.takeOut(); err != nil || len(notes) > 0 || w.read(insideA) != before || w.exists("a/"+MadeName) {
		t.Errorf("%q, %v, %s", notes, err, w.read(insideA))
	}
	g.Close()
}

// A login that was made inside is the user's after their word, and the guards of
// all projects go on with it.
func TestALoginThatWasMadeInsideIsTakenByItsUser(t *testing.T) {
	w, e := guarded(t)
	if err := Take(w.path("a"), w.path(hostFile)); !errors.Is(err, ErrNoneMade) {
		t.Errorf("none was made: %v", err)
	}
	mine, other := w.guard("a", e), w.guard("b", e)
	defer mine.Close()
	defer other.Close()
	must(t, mine.Keep(broker.Grant{Access: "a9", Refresh: "r9", Scope: "user:inference", Expires: time.Now().Add(time.Hour)}))
	var first, second follower
	mine.Begin(first.tell)
	other.Begin(second.tell)
	must(t, Take(w.path("a"), w.path(hostFile)))
	w.mustHold(hostFile, 9)
	if w.exists("a/"+MadeName) || w.exists(hostLock) || !strings.Contains(w.read(hostFile), `"kept":true`) {
		t.Errorf("the user's is %s", w.read(hostFile))
	}
	w.until("the other project uses it", func() bool { return second.has("a9")() })
	w.until("the guard has noticed", func() bool { return !mine.Made() })
	must(t, os.Remove(w.path(hostFile))) // one who was never logged in outside
	must(t, mine.Keep(broker.Grant{Access: "a8", Refresh: "r8", Expires: time.Now().Add(time.Hour)}))
	must(t, Take(w.path("a"), w.path(hostFile)))
	w.mustHold(hostFile, 8)
}

func TestAFullDiskLosesNothing(t *testing.T) {
	if !alone.In(t, nil) {
		return
	}
	w := newWorld(t, numbered(1))
	w.write(insideA, numbered(2))
	w.lent(1)
	alone.WithFileLimit(t, 0, func() {
		if _, err := w.takeOut(); err == nil {
			t.Error("no error")
		}
	})
	if got := w.read(hostFile); got != numbered(1) {
		t.Errorf("the user's file is %q", got)
	}
	w.mustHold(insideA, 2)
	if left, _ := os.ReadDir(w.path(".claude")); len(left) != 1 {
		t.Errorf("left in ~/.claude: %v", left)
	}
	_, err := w.takeOut()
	must(t, err)
	w.mustHold(hostFile, 2)
}
