//go:build lab

package claude_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/account"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/script"
	"claudebox/checks/kit/trial"
	"claudebox/checks/kit/window"
)

// The user's login is outside; the agent uses it by placeholders, and claudebox
// alone renews it.

const loginFile = ".claude/.credentials.json"

// expired is a world whose user is logged in, with a token that has run out.
func expired(t *testing.T, turns ...script.Turn) (*world, *account.Account) {
	t.Helper()
	w := newWorld(t, turns...)
	a := w.openAccount(t, "code", 8*time.Hour)
	w.write(t, loginFile, a.Login(time.Now().Add(-time.Hour)))
	return w, a
}

// outside is the real Claude Code outside of any sandbox, on one prompt.
func (w *world) outside(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "CLAUDEBOX_TEST_CLAUDE"), "-p", "please begin")
	cmd.Dir, cmd.WaitDelay = filepath.Join(w.home, "elsewhere"), patience
	must.Do(t, os.MkdirAll(cmd.Dir, 0o755))
	for name, value := range w.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	for name, value := range w.constants {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "NODE_EXTRA_CA_CERTS="+w.env["SSL_CERT_FILE"])
	return cmd
}

func (w *world) found(t *testing.T, pattern string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(w.home, pattern))
	must.Do(t, err)
	return len(names) > 0
}

// refreshes wants the login to have been renewed just so often, and always
// successfully.
func refreshes(t *testing.T, a *account.Account, want int) {
	t.Helper()
	grants := a.Grants()
	for i, grant := range grants {
		if !grant.OK || grant.Type != "refresh_token" {
			t.Errorf("grant %d is %+v; want a renewal that goes well", i+1, grant)
		}
	}
	if len(grants) != want {
		t.Errorf("renewed %d times; want %d", len(grants), want)
	}
}

// authorised wants the requests to have been made with these access tokens.
func (w *world) authorised(t *testing.T, numbers ...int) {
	t.Helper()
	requests := w.model.Requests()
	if len(requests) != len(numbers) {
		t.Fatalf("%d requests; want %d", len(requests), len(numbers))
	}
	for i, number := range numbers {
		if got, want := requests[i].Header.Get("Authorization"), "Bearer "+account.Access(number); got != want {
			t.Errorf("request %d is authorised by %q; want %q", i+1, got, want)
		}
	}
}

func TestLoginIsRenewedOutside(t *testing.T) {
	w, a := expired(t, script.Say("Hello."), script.Say("Hello again."), script.Say("Hello outside."))
	before := w.read(t, loginFile)
	w.print(t).succeed(t, "Hello.")
	refreshes(t, a, 1)
	after := w.read(t, loginFile)
	if !strings.Contains(after, account.Access(1)) || !strings.Contains(after, `"subscriptionType":"max"`) {
		t.Errorf("the user's login was\n%s\nand is\n%s", before, after)
	}
	w.print(t).succeed(t, "Hello again.")
	if out, err := w.outside(t).Output(); err != nil || string(out) != "Hello outside.\n" {
		t.Errorf("outside: %q, %v", out, err)
	}
	refreshes(t, a, 1)
	w.authorised(t, 1, 1, 1)
	w.nothingInside(t)
	if entries, _ := filepath.Glob(filepath.Join(w.home, ".claude*lock*")); len(entries) > 0 || w.found(t, ".claude/.*lock*") {
		t.Errorf("locks are left: %q", entries)
	}
}

// nothingInside wants no true token to be in what the sandbox keeps.
func (w *world) nothingInside(t *testing.T) {
	t.Helper()
	for _, part := range []string{".claude", "cache"} {
		homes, err := filepath.Glob(filepath.Join(w.home, ".claudebox/*/*", part))
		must.Do(t, err)
		for _, home := range homes {
			err := filepath.WalkDir(home, func(name string, entry fs.DirEntry, err error) error {
				if err != nil || !entry.Type().IsRegular() {
					return err
				}
				content, err := os.ReadFile(name)
				if bytes.Contains(content, []byte("01-access-")) || bytes.Contains(content, []byte("01-refresh-")) {
					t.Errorf("%s holds a true token", name)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// An agent's home that goes at the end does not take the login with it.
func TestLoginIsRenewedForAnEphemeralHome(t *testing.T) {
	w, a := expired(t, script.Say("Hello."), script.Say("Hello again."))
	w.more = map[string]any{"state": "ephemeral"}
	w.print(t).succeed(t, "Hello.")
	w.print(t).succeed(t, "Hello again.")
	refreshes(t, a, 1)
	w.authorised(t, 1, 1)
}

// Whoever logs in or renews outside, a session that runs goes on with it.
func TestLoginOfOutsideReachesASession(t *testing.T) {
	w, a := expired(t, script.Say("First."), script.Say("Outside."), script.Say("Second."))
	w.write(t, loginFile, a.Login(time.Now().Add(time.Hour)))
	c := w.interact(t)
	c.Await(t, window.Ready)
	c.Enter(t, "first")
	c.Await(t, "First.")
	w.write(t, loginFile, a.Login(time.Now().Add(-time.Hour))) // it runs out
	if out, err := w.outside(t).CombinedOutput(); err != nil || string(out) != "Outside.\n" {
		t.Fatalf("outside: %q, %v", out, err)
	}
	c.Enter(t, "second")
	c.Await(t, "Second.")
	c.Leave(t)
	refreshes(t, a, 1)
	w.authorised(t, 100, 1, 1)
	w.nothingInside(t)
}

// holds reports whether the file that a pattern finds holds a text.
func (w *world) holds(t *testing.T, pattern, text string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(w.home, pattern))
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %q, %v", pattern, names, err)
	}
	content, err := os.ReadFile(names[0])
	return err == nil && bytes.Contains(content, []byte(text))
}

// Two sandboxes, five in checks/long, and Claude Code outside need a new token at the same time. Who is first holds up the
// others; they then have what it got.
func TestSeveralAtOnceRenewOnce(t *testing.T) {
	sandboxes := trial.Count(2, 5)
	w, a := expired(t)
	open := a.Hold()
	defer open()
	var commands []*exec.Cmd
	stdout := make([]bytes.Buffer, sandboxes+1)
	for i := range sandboxes {
		other := *w
		other.project = filepath.Join(w.home, fmt.Sprint("project", i))
		w.write(t, fmt.Sprintf("project%d/README.md", i), "# One of many\n")
		commands = append(commands, other.command(t, "-p", "please begin"))
	}
	commands = append(commands, w.outside(t))
	for i, cmd := range commands {
		w.model.Add(script.Say("Done."))
		cmd.Stdout = &stdout[i]
		start(t, cmd)
	}
	must.Await(t, "somebody renews", func() bool { return w.found(t, ".claude/.oauth_refresh.lock") })
	time.Sleep(2 * time.Second) // long enough for the others to have tried; were they not held up, they would be refused
	open()
	numbers := make([]int, len(commands))
	for i, cmd := range commands {
		if err := cmd.Wait(); err != nil || stdout[i].String() != "Done.\n" {
			t.Errorf("%d: %q, %v", i+1, stdout[i].String(), err)
		}
		numbers[i] = 1
	}
	refreshes(t, a, 1)
	w.authorised(t, numbers...)
	w.nothingInside(t)
	if w.found(t, ".claude/.oauth_refresh.lock") {
		t.Error("the user's lock is left")
	}
}

func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	must.Do(t, cmd.Start())
}

// A login that has ended outside is not emptied inside, and not outside. When
// the user is back, so is the agent.
func TestRevokedLoginIsNotTakenFromTheUser(t *testing.T) {
	w, a := expired(t)
	before := w.read(t, loginFile)
	a.Revoke()
	got := w.print(t)
	if got.status == 0 || w.read(t, loginFile) != before {
		t.Errorf("status %d, the user's login is\n%s", got.status, w.read(t, loginFile))
	}
	if !strings.Contains(got.stderr, "your Claude login has ended") {
		t.Errorf("it is not said:\n%s", indent(got.stderr))
	}
	w.write(t, loginFile, a.Login(time.Now().Add(time.Hour))) // the user logs in anew
	w.model.Add(script.Say("Back."))
	w.print(t).succeed(t, "Back.")
}

// Anybody may have given the code of a login that is made inside.
func TestLoginMadeInsideIsTheProjectsAlone(t *testing.T) {
	w := newWorld(t, script.Say("Hello."), script.Say("Elsewhere."))
	a := w.openAccount(t, "code-from-the-browser", 8*time.Hour)
	before := a.Login(time.Now().Add(time.Hour))
	w.write(t, loginFile, before)
	w.login(t, "code-from-the-browser")
	if got := w.read(t, loginFile); got != before {
		t.Errorf("the user's login is\n%s", got)
	}
	if !w.holds(t, ".claudebox/instances/*/made-login", account.Access(1)) {
		t.Error("the login is not kept")
	}
	w.nothingInside(t)
	w.project = filepath.Join(w.home, "elsewhere")
	w.write(t, "elsewhere/README.md", "# Another\n")
	w.print(t).succeed(t, "Elsewhere.")
	w.authorised(t, 1, 0)
	w.project = filepath.Join(w.home, "project")
	keep := w.command(t)
	keep.Args = []string{keep.Args[0], "login", "keep", "-P", filepath.Join(w.home, ownProfile)}
	if out, err := keep.CombinedOutput(); err != nil || !strings.Contains(string(out), "is yours now") || !w.holds(t, loginFile, account.Access(1)) {
		t.Errorf("login keep: %v\n%s", err, out)
	}
	w.model.Add(script.Say("Everywhere."))
	w.project = filepath.Join(w.home, "elsewhere")
	w.print(t).succeed(t, "Everywhere.")
	w.authorised(t, 1, 0, 1)
}

// Whether such a login is theirs, a user is asked when the session has ended. Who says yes is in [TestAFirstDay].
func TestTheUserKeepsALoginMadeInsideInItsProject(t *testing.T) {
	w := newWorld(t)
	w.more = map[string]any{"confirm": "never"}
	a := w.openAccount(t, "code-from-the-browser", 8*time.Hour)
	w.write(t, loginFile, a.Login(time.Now().Add(time.Hour)))
	cmd := w.command(t)
	cmd.Args = slices.DeleteFunc(cmd.Args, func(word string) bool { return word == "--yes" })
	c := window.Open(t, cmd)
	c.Login(t, "code-from-the-browser")
	c.Enter(t, "/exit")
	c.Await(t, "[y/N]")
	c.Press(t, "n\r")
	c.Ended(t, 0)
	if !w.holds(t, loginFile, account.Access(0)) || !w.found(t, ".claudebox/instances/*/made-login") {
		t.Errorf("the user's login is %s", w.read(t, loginFile))
	}
}

func TestUnusableLoginsAreSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
		status  int
	}{
		"truncated":  {`{"claudeAiOauth":{"accessTok`, 0o600, "does not enter: it is no JSON object", 1},
		"malformed":  {`{"claudeAiOauth":[]}`, 0o600, "is not what Claude Code writes", 1},
		"unreadable": {"{}", 0, "permission denied", 125},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.openAccount(t, "code", time.Hour)
			w.write(t, loginFile, tc.content)
			file := filepath.Join(w.home, loginFile)
			must.Do(t, os.Chmod(file, tc.mode))
			plan := w.command(t, "--dry-run")
			var text bytes.Buffer
			plan.Stderr = &text
			_ = plan.Run() // 125 when it cannot be read
			if said := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(said, tc.want) {
				t.Errorf("the audit does not say %q:\n%s", tc.want, indent(text.String()))
			}
			if got := w.print(t); got.status != tc.status {
				t.Errorf("status %d; want %d\n%s", got.status, tc.status, indent(got.stderr))
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != tc.mode {
				t.Errorf("the user's file is changed: %v, %v", info.Mode(), err)
			}
			must.Do(t, os.Chmod(file, 0o600))
			if got := w.read(t, loginFile); got != tc.content {
				t.Errorf("the user's file is %q", got)
			}
		})
	}
}

// shell runs a command in the project's sandbox.
func (w *world) shell(t *testing.T, script string) string {
	t.Helper()
	w.writeProfile(t)
	cmd := exec.CommandContext(t.Context(), program(t, "CLAUDEBOX_BIN"), "shell",
		"--profile", filepath.Join(w.home, ownProfile), "--yes", "--", "bash", "-c", script)
	cmd.Dir, cmd.WaitDelay = w.project, patience
	for name, value := range w.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, indent(string(out)))
	}
	return string(out)
}
