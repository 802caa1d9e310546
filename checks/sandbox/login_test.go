//go:build lab

package sandbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// lentLogin is a user's login with the n-th tokens, good for some hours.
func lentLogin(n int, expires time.Time) string {
	return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"a%d","refreshToken":"r%d","expiresAt":%d,"scopes":["user:inference"],"subscriptionType":"max"},"mcpOAuth":{"x":"%s"}}`,
		n, n, expires.UnixMilli(), canary)
}

const loginFile = ".claude/.credentials.json"

// The way of a renewed login to the user carries tokens and dates, and nothing
// else that an agent may write there.
func TestTheWayOfARenewedLoginCarriesNothingElse(t *testing.T) {
	expires := time.Now().Add(time.Hour)
	for name, tc := range map[string]struct{ script, want string }{
		"other keys": {
			`printf '{"claudeAiOauth":{"accessToken":"a2","refreshToken":"r2","expiresAt":1,"subscriptionType":"free","scopes":["x"],"evil":1},"hooks":{"evil":2}}' >$c`,
			strings.NewReplacer(`"a1"`, `"a2"`, `"r1"`, `"r2"`, fmt.Sprint(expires.UnixMilli()), "1").Replace(lentLogin(1, expires)),
		},
		"a link to a file of the host": {`rm $c; ln -s /etc/passwd $c`, lentLogin(1, expires)},
		"a link to itself":             {`rm $c; ln -s .credentials.json $c`, lentLogin(1, expires)},
		"a folder":                     {`rm $c; mkdir $c`, lentLogin(1, expires)},
		"a pipe":                       {`rm $c; mkfifo $c`, lentLogin(1, expires)},
		"half a file":                  {`head -c 60 $c >/tmp/half; cat /tmp/half >$c`, lentLogin(1, expires)},
		"none":                         {`rm $c`, lentLogin(1, expires)},
		"a token that is an order":     {`sed -i 's/"a1"/"a2\\u001b]0;x\\u0007"/; s/"r1"/"r2"/' $c`, lentLogin(1, expires)},
		"a token as long as a book":    {`{ printf '{"claudeAiOauth":{"refreshToken":"r2","accessToken":"'; head -c 100000 /dev/zero | tr '\0' a; printf '"}}'; } >$c`, lentLogin(1, expires)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, loginFile, lentLogin(1, expires))
			run(t, w.session("c=~/.claude/.credentials.json; "+tc.script))
			if got := w.read(t, loginFile); !sameKeys(got, tc.want) {
				t.Errorf("the user's login is\n%.500s\nwant\n%s", got, tc.want)
			}
			wantEqual(t, w.inside(t, `true`), "") // and the next session begins as ever
		})
	}
}

// sameKeys compares JSON objects of which only the order of keys differs.
func sameKeys(a, b string) bool {
	split := func(r rune) bool { return strings.ContainsRune(`{},`, r) }
	count := map[string]int{}
	for _, part := range strings.FieldsFunc(a, split) {
		count[part]++
	}
	for _, part := range strings.FieldsFunc(b, split) {
		count[part]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// Nobody can tell another account's tokens from renewed ones, but that a login
// is renewed long before it runs out is strange, and said.
func TestASwapOfTheLoginIsSaid(t *testing.T) {
	w := newWorld(t)
	w.write(t, loginFile, lentLogin(1, time.Now().Add(5*time.Hour)))
	cmd := w.claudebox("shell", "--yes", "--", "sed", "-i", `s/"a1"/"other"/; s/"r1"/"other"/`, w.path(loginFile))
	got := run(t, cmd)
	for _, want := range []string{"your login was renewed inside", "before it ran out; if nobody did `/login` inside, do it outside"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("not said: %s\n%s", want, got.stderr)
		}
	}
}

// A session shows the login, and nothing that lies beside it.
func TestTheLoginIsInTheAudit(t *testing.T) {
	w := newWorld(t)
	w.write(t, loginFile, lentLogin(1, time.Now().Add(time.Hour)))
	got := run(t, w.claudebox("--dry-run"))
	if said := strings.Join(strings.Fields(got.stderr), " "); !strings.Contains(said, "your login enters, with what renews it") {
		t.Errorf("not said:\n%s", got.stderr)
	}
	if inside := w.inside(t, `cat ~/.claude/.credentials.json`); strings.Contains(inside, canary) || !strings.Contains(inside, `"r1"`) {
		t.Errorf("inside is %s", inside)
	}
}

// L1: a login that entered once entered ever after, also when it should not, and
// neither plan nor why showed it.
func TestALoginThatEnteredOnceIsTakenOutWhenItMayNotStay(t *testing.T) {
	const look = `cat ~/.claude/.credentials.json 2>/dev/null || echo none`
	for name, tc := range map[string]struct {
		then func(w *world)
		want string
	}{
		"an API key enters":      {func(w *world) { w.env["ANTHROPIC_API_KEY"] = "sk-ant-api03-x" }, "an API key enters instead"},
		"the user is logged out": {func(w *world) { os.Remove(w.path(loginFile)) }, "you are not logged in outside any more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			flags := []string{"--profile", w.profile(t, "extra_env_passthrough: [ANTHROPIC_API_KEY]")}
			w.write(t, loginFile, lentLogin(1, time.Now().Add(time.Hour)))
			if inside := w.inside(t, look, flags...); !strings.Contains(inside, `"r1"`) {
				t.Fatalf("it did not enter: %s", inside)
			}
			if got := succeed(t, w.claudebox(append(append([]string{"why"}, flags...), "~/"+loginFile)...)); !strings.HasPrefix(got, "yes:") {
				t.Errorf("why says %s", got)
			}
			tc.then(w)
			if got := succeed(t, w.claudebox(append([]string{"plan"}, flags...)...)); !strings.Contains(words(got), "is taken out of the agent's home: "+tc.want) {
				t.Errorf("the plan does not say so:\n%s", got)
			}
			if got := words(run(t, w.claudebox(append(append([]string{"why"}, flags...), "~/"+loginFile)...)).stdout); !strings.HasPrefix(got, "no:") || !strings.Contains(got, tc.want) {
				t.Errorf("why says %s", got)
			}
			for range 2 {
				wantEqual(t, w.inside(t, look, flags...), "none\n")
			}
		})
	}
}

// words is a text without its line ends.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
