//go:build lab

package sandbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/expect"
)

// lentLogin is a user's login with the n-th tokens, good for some hours.
func lentLogin(n int, expires time.Time) string {
	return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"a%d","refreshToken":"r%d","expiresAt":%d,"scopes":["user:inference"],"subscriptionType":"max"},"mcpOAuth":{"x":"%s"}}`,
		n, n, expires.UnixMilli(), canary)
}

const loginFile = ".claude/.credentials.json"

// Nothing that an agent writes where it has placeholders reaches the user's
// login.
func TestNoLoginComesFromInside(t *testing.T) {
	const written = `{"claudeAiOauth":{"accessToken":"a2","refreshToken":"r2","expiresAt":1,"evil":1},"hooks":{"evil":2}}`
	want := lentLogin(1, time.Now().Add(time.Hour))
	for name, script := range map[string]string{
		"another login":                `printf '` + written + `' >$c`,
		"a link to a file of the host": `rm $c; ln -s /etc/passwd $c`,
		"a link to itself":             `rm $c; ln -s .credentials.json $c`,
		"a folder":                     `rm $c; mkdir $c`,
		"a pipe":                       `rm $c; mkfifo $c`,
		"half a file":                  `head -c 60 $c >/tmp/half; cat /tmp/half >$c`,
		"none":                         `rm $c`,
		"locks that nobody gives back": `mkdir ~/.claude/.oauth_refresh.lock ~/.claude/.storage-write.lock`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, loginFile, want)
			run(t, w.session("c=~/.claude/.credentials.json; "+script))
			if got := w.read(t, loginFile); got != want {
				t.Errorf("the user's login is\n%.500s\nwant\n%s", got, want)
			}
			if inside := w.inside(t, `cat ~/.claude/.credentials.json`); !strings.Contains(inside, "cbx") || strings.Contains(inside, `"r2"`) {
				t.Errorf("the next session has %s", inside)
			}
		})
	}
}

// The audit says where the login may go; inside there is a placeholder, and
// nothing that lies beside the login.
func TestTheLoginIsInTheAudit(t *testing.T) {
	w := newWorld(t)
	w.write(t, loginFile, lentLogin(1, time.Now().Add(time.Hour)))
	got := run(t, w.claudebox("--dry-run"))
	said := oneLine(got.stderr)
	expect.Contains(t, said, "secrets that stay outside", "your Claude login api.anthropic.com agent claude console.anthropic.com")
	inside := w.inside(t, `cat ~/.claude/.credentials.json`)
	if strings.Contains(inside, canary) || strings.Contains(inside, `"r1"`) || strings.Contains(inside, `"a1"`) || !strings.Contains(inside, "cbx") {
		t.Errorf("inside is %s", inside)
	}
}

// A placeholder does not stay when there is nothing behind it.
func TestAPlaceholderIsTakenOutWhenItMayNotStay(t *testing.T) {
	const look = `cat ~/.claude/.credentials.json 2>/dev/null || echo none`
	for name, tc := range map[string]struct {
		then func(w *world)
		want string
	}{
		"an API key enters":      {func(w *world) { w.env["ANTHROPIC_API_KEY"] = "sk-ant-api03-x" }, "an API key enters instead"},
		"the user is logged out": {func(w *world) { os.Remove(w.path(loginFile)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(t, loginFile, lentLogin(1, time.Now().Add(time.Hour)))
			if inside := w.inside(t, look); !strings.Contains(inside, "cbx") {
				t.Fatalf("there is none: %s", inside)
			}
			if got := oneLine(run(t, w.claudebox("why", "~/"+loginFile)).stdout); !strings.HasPrefix(got, "no:") ||
				!strings.Contains(got, "is used from outside") {
				t.Errorf("why says %s", got)
			}
			tc.then(w)
			if got := oneLine(run(t, w.claudebox("why", "~/"+loginFile)).stdout); !strings.HasPrefix(got, "no:") || !strings.Contains(got, tc.want) {
				t.Errorf("why says %s", got)
			}
			for range 2 {
				wantEqual(t, w.inside(t, look), "none\n")
			}
		})
	}
}
