package login

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"claudebox/checks/kit/alone"
	"claudebox/checks/kit/must"
	"claudebox/internal/secret/broker"
)

// endpoint is a token endpoint: what renews a login works once.
type endpoint struct {
	mu     sync.Mutex
	good   string // the refresh token that is good
	number int    // of the login that it gave last
	asked  []map[string]string
	fail   error
	status int // to answer with instead; 0: none
}

func (e *endpoint) post(_ context.Context, body []byte) (int, []byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var demand map[string]string
	if err := json.Unmarshal(body, &demand); err != nil {
		return 0, nil, err
	}
	e.asked = append(e.asked, demand)
	switch {
	case e.fail != nil:
		return 0, nil, e.fail
	case e.status != 0:
		return e.status, []byte("{}"), nil
	case demand["refresh_token"] != e.good:
		return http.StatusBadRequest, []byte(`{"error":"invalid_grant"}`), nil
	}
	e.number++
	e.good = fmt.Sprint("r", e.number)
	answer := fmt.Sprintf(`{"access_token":"a%d","refresh_token":"r%d","expires_in":28800}`, e.number, e.number)
	return http.StatusOK, []byte(answer), nil
}

func (e *endpoint) times() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// guarded is a world whose user has the first login, which has run out.
func guarded(t *testing.T) (world, *endpoint) {
	return newWorld(t, numbered(1)), &endpoint{good: "r1", number: 1}
}

func (w world) guard(instance string, e *endpoint) *Guard {
	w.t.Helper()
	g, err := NewGuard(w.path(instance), w.path(hostFile), broker.NewKey(), e.post)
	must.Do(w.t, err)
	must.Do(w.t, g.GiveInside())
	return g
}

// follower notes what a guard tells.
type follower struct {
	mu   sync.Mutex
	last string
}

func (f *follower) tell(access, _ string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = access
}

func (f *follower) has(access string) func() bool {
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.last == access
	}
}

func TestInsideIsAPlaceholderAndNothingElse(t *testing.T) {
	w, e := guarded(t)
	w.write(insideA, `{"mcpOAuth":{"x":1},"claudeAiOauth":{"accessToken":"old","refreshToken":"old"}}`)
	w.write(hostFile, strings.Replace(numbered(1), `"scopes"`, `"secret":"r1","subscriptionType":"max","scopes"`, 1))
	g := w.guard("a", e)
	defer g.Close()
	text := w.read(insideA)
	for _, secret := range []string{"a1", "r1", "old"} {
		if strings.Contains(text, `"`+secret+`"`) {
			t.Errorf("%s is inside: %s", secret, text)
		}
	}
	found, _, err := parse([]byte(text))
	must.Do(t, err)
	if !g.Key().Is(broker.ClaudeLogin, found.access) || found.scope != "user:inference" || !strings.Contains(text, `"mcpOAuth":{"x":1}`) ||
		!strings.Contains(text, `"subscriptionType":"max"`) || time.Until(time.UnixMilli(found.expires)) < 24*time.Hour {
		t.Errorf("inside is %s", text)
	}
}

func TestALogoutOutsideEmptiesTheAgentsFileAtTheNextStart(t *testing.T) {
	w, e := guarded(t)
	w.guard("a", e).Close()
	must.Do(t, os.Remove(w.path(hostFile)))
	w.guard("a", e).Close()
	if w.exists(insideA) {
		t.Errorf("inside is %s", w.read(insideA))
	}
}

func TestSeveralGuardsRenewOnce(t *testing.T) {
	w, e := guarded(t)
	a, b := w.guard("a", e), w.guard("b", e)
	followers := [2]follower{}
	for i, g := range []*Guard{a, b} {
		if _, _, pending := g.Current(); !pending {
			t.Error("a login that has run out is not pending")
		}
		g.Begin(followers[i].tell)
	}
	for i := range followers {
		must.Await(t, "the new login is told", followers[i].has("a2"))
	}
	a.Close()
	b.Close()
	if e.times() != 1 || e.asked[0]["client_id"] != broker.Client || e.asked[0]["scope"] != "user:inference" {
		t.Errorf("asked for %q", e.asked)
	}
	w.mustHold(hostFile, 2)
	for _, lock := range []string{hostLock, ".claude.lock", ".claude/" + writeLock} {
		if w.exists(lock) {
			t.Errorf("%s is left", lock)
		}
	}
}

// Claude Code outside, of any version, holds up a renewal, and is held up.
func TestEachOfClaudesLocksHoldsUpARenewal(t *testing.T) {
	for _, name := range []string{hostLock, ".claude.lock"} {
		t.Run(name, func(t *testing.T) {
			w, e := guarded(t)
			must.Do(t, os.Mkdir(w.path(name), 0o755))
			g := w.guard("a", e)
			defer g.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if err := g.Renew(ctx, ""); !errors.Is(err, errBusy) || e.times() != 0 {
				t.Errorf("%v, asked %d times", err, e.times())
			}
			done := make(chan error)
			go func() { done <- g.Renew(t.Context(), "") }()
			w.write(hostFile, strings.Replace(numbered(7), "1700000000000", "4700000000000", 1)) // as it does outside
			must.Do(t, os.Remove(w.path(name)))
			if err := <-done; err != nil || e.times() != 0 {
				t.Errorf("%v, asked %d times: another had renewed it", err, e.times())
			}
			if access, _, _ := g.Current(); access != "a7" {
				t.Errorf("the login is %q", access)
			}
		})
	}
}

func TestARefusedLoginIsRenewedOnce(t *testing.T) {
	w, e := guarded(t)
	w.write(hostFile, strings.Replace(numbered(1), "1700000000000", "4700000000000", 1)) // good for long, as it says
	g := w.guard("a", e)
	defer g.Close()
	must.Do(t, g.Renew(t.Context(), ""))
	if e.times() != 0 {
		t.Error("renewed without need")
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { must.Do(t, g.Renew(t.Context(), "a1")) })
	}
	all.Wait()
	if e.times() != 1 {
		t.Errorf("asked %d times", e.times())
	}
	w.mustHold(hostFile, 2)
}

// A server may be brought to refuse a good login, by a request of the agent's. Each
// renewal that comes of it makes what is elsewhere worthless.
func TestAnAgentCannotHaveTheLoginRenewedAllTheTime(t *testing.T) {
	w, e := guarded(t)
	g := w.guard("a", e)
	defer g.Close()
	for number := range 2 * atOnce {
		must.Do(t, g.Renew(t.Context(), fmt.Sprint("a", number+1)))
	}
	if e.times() > atOnce+1 { // the first one had run out
		t.Errorf("renewed %d times", e.times())
	}
}

// What renews a login works once, so there must be room for what comes of it.
func TestAFullDiskIsNoticedBeforeTheLoginIsRenewed(t *testing.T) {
	if !alone.In(t, nil) {
		return
	}
	w, e := guarded(t)
	g := w.guard("a", e)
	for _, room := range []uint64{0, 4 << 10} {
		alone.WithFileLimit(t, room, func() {
			if g.Renew(t.Context(), "") == nil {
				t.Error("no error")
			}
		})
	}
	if e.times() != 0 || !w.holds(hostFile, 1)() {
		t.Errorf("asked %d times; the file is %s", e.times(), w.read(hostFile))
	}
	must.Do(t, g.Renew(t.Context(), ""))
	w.mustHold(hostFile, 2)
	if notes := g.Close(); len(notes) == 0 || !strings.Contains(notes[0], "no room") {
		t.Errorf("said %q", notes)
	}
	if left, _ := os.ReadDir(w.path(".claude")); len(left) != 1 {
		t.Errorf("left in ~/.claude: %v", left)
	}
}

// What renews a login is shown once, and the user's file is not emptied.
func TestALoginThatHasEndedIsNotTriedAgain(t *testing.T) {
	w, e := guarded(t)
	e.good = "another"
	before := w.read(hostFile)
	g := w.guard("a", e)
	var f follower
	f.last = "x"
	g.Begin(f.tell)
	must.Await(t, "its end is told", f.has(""))
	if err := g.Renew(t.Context(), "a1"); !errors.Is(err, errEnded) || e.times() != 1 {
		t.Errorf("%v, asked %d times", err, e.times())
	}
	if w.read(hostFile) != before {
		t.Errorf("the user's file is %s", w.read(hostFile))
	}
	must.Do(t, os.Remove(w.path(insideA))) // as the agent may do
	w.write(hostFile, strings.Replace(numbered(5), "1700000000000", "4700000000000", 1))
	must.Await(t, "the new login is told", f.has("a5"))
	must.Await(t, "it is inside again", func() bool { return w.exists(insideA) })
	if notes := g.Close(); len(notes) != 1 || !strings.Contains(notes[0], "has ended") {
		t.Errorf("said %q", notes)
	}
}

func TestARenewalThatFailsLeavesTheLogin(t *testing.T) {
	for name, change := range map[string]func(*endpoint){
		"no network":      func(e *endpoint) { e.fail = errors.New("no route") },
		"a server's own":  func(e *endpoint) { e.status = http.StatusInternalServerError },
		"too many":        func(e *endpoint) { e.status = http.StatusTooManyRequests },
		"another refusal": func(e *endpoint) { e.status = http.StatusUnauthorized },
		"nothing in it":   func(e *endpoint) { e.status = http.StatusOK },
	} {
		t.Run(name, func(t *testing.T) {
			w, e := guarded(t)
			change(e)
			g := w.guard("a", e)
			defer g.Close()
			if g.Renew(t.Context(), "") == nil {
				t.Error("no error")
			}
			if access, _, _ := g.Current(); access != "a1" || !w.holds(hostFile, 1)() {
				t.Errorf("the login is %q, and in the file %s", access, w.read(hostFile))
			}
		})
	}
}

// The old login works no more once it was renewed, so the new one must not be lost: here
// because another program is writing the file at that moment.
func TestARenewedLoginThatCannotBeWrittenIsKept(t *testing.T) {
	for _, when := range []string{"later", "at the end", "never"} {
		t.Run("written "+when, func(t *testing.T) {
			w, e := guarded(t)
			g, err := NewGuard(w.path("a"), w.path(hostFile), broker.NewKey(), func(ctx context.Context, body []byte) (int, []byte, error) {
				w.write(hostFile, "{")
				return e.post(ctx, body)
			})
			must.Do(t, err)
			must.Do(t, g.Renew(t.Context(), ""))
			if when != "never" {
				w.write(hostFile, numbered(1))
				g.mu.Lock()
				g.follow()
				g.mu.Unlock()
			}
			if access, _, _ := g.Current(); access != "a2" {
				t.Errorf("the login is %q", access)
			}
			if when == "later" {
				must.Do(t, g.Renew(t.Context(), ""))
				w.mustHold(hostFile, 2)
			}
			notes := g.Close()
			if lost := len(notes) == 1 && strings.Contains(notes[0], "could not be written"); lost != (when == "never") {
				t.Errorf("said %q", notes)
			}
			if e.times() != 1 || when != "never" && !w.holds(hostFile, 2)() {
				t.Errorf("asked %d times; the file is %s", e.times(), w.read(hostFile))
			}
		})
	}
}

func TestALoginMadeInsideIsTheInstancesOwn(t *testing.T) {
	w, e := guarded(t)
	before := w.read(hostFile)
	g := w.guard("a", e)
	must.Do(t, g.Keep(broker.Grant{Access: "made", Refresh: "made-refresh", Scope: "x y", Expires: time.Now().Add(time.Hour)}))
	if access, scope, _ := g.Current(); access != "made" || scope != "x y" || !g.Made() {
		t.Errorf("the login is %q with %q", access, scope)
	}
	g.Close()
	if w.read(hostFile) != before || strings.Contains(w.read(insideA), "made-refresh") {
		t.Errorf("the user's file is %s, inside is %s", w.read(hostFile), w.read(insideA))
	}
	again := w.guard("a", e)
	if access, _, _ := again.Current(); access != "made" {
		t.Errorf("the next session has %q", access)
	}
	again.Forget()
	again.Close()
	if third := w.guard("a", e); third.Made() || w.read(hostFile) != before {
		t.Error("it is not forgotten")
	}
	for _, bad := range []string{"a\nb", strings.Repeat("a", maxToken+1)} {
		if w.guard("b", e).Keep(broker.Grant{Access: bad}) == nil {
			t.Errorf("%.9q is kept", bad)
		}
	}
}

// All sessions of an instance know each other's placeholders.
func TestPlaceholdersBelongToTheInstance(t *testing.T) {
	w, e := guarded(t)
	a, same, b := w.guard("a", e), w.guard("a", e), w.guard("b", e)
	if !bytes.Equal(a.Key(), same.Key()) || bytes.Equal(a.Key(), b.Key()) {
		t.Error("the keys are wrong")
	}
	for _, g := range []*Guard{a, same, b} {
		g.Close()
	}
	must.Write(t, w.path("a/"+KeyName), "short")
	if _, err := NewGuard(w.path("a"), w.path(hostFile), broker.NewKey(), e.post); err == nil {
		t.Error("another key is taken")
	}
}
