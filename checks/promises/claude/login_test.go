//go:build lab

package claude_test

import (
	"fmt"
	"strings"
	"testing"

	"claudebox/checks/kit/account"
	"claudebox/checks/kit/script"
)

func TestNoCredentialsAreNoErrorOfClaudebox(t *testing.T) {
	w := newWorld(t)
	delete(w.env, "ANTHROPIC_API_KEY")
	got := w.print(t)
	if got.status != 1 || !strings.Contains(got.stdout, "Not logged in") {
		t.Errorf("status %d, stdout %q; want Claude Code's own word", got.status, got.stdout)
	}
	if strings.Contains(strings.ToLower(got.stderr), "credential") {
		t.Errorf("claudebox speaks of credentials:\n%s", indent(got.stderr))
	}
}

func TestLoginMadeInsideIsRenewedOutside(t *testing.T) {
	w := newWorld(t, script.Say("Hello."), script.Say("Hello again."))
	a := w.openAccount(t, "code-from-the-browser", 0) // tokens have expired when they come
	w.login(t, "code-from-the-browser")
	w.print(t).succeed(t, "Hello again.")
	grants := a.Grants()
	for i, grant := range grants {
		if !grant.OK || (grant.Type == "refresh_token") != (i > 0) {
			t.Errorf("grant %d is %+v; want a login, then refreshes that go well", i+1, grant)
		}
	}
	if len(grants) < 2 || len(grants) > 3 { // one for each session
		t.Errorf("tokens were asked for %d times", len(grants))
	}
	requests := w.model.Requests()
	last := requests[len(requests)-1].Header.Get("Authorization")
	if newest := fmt.Sprint("Bearer ", account.Access(len(grants))); last != newest {
		t.Errorf("authorised by %q; want %q", last, newest)
	}
	w.nothingInside(t)
}

// login logs in inside with a code.
func (w *world) login(t *testing.T, code string) {
	t.Helper()
	c := w.interact(t)
	c.Login(t, code)
	c.Enter(t, "hello")
	c.Await(t, "Hello.")
	c.Leave(t)
}
