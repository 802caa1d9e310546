package state_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/agent/state"
)

const login = `{"claudeAiOauth":{"accessToken":"%","refreshToken":"r","expiresAt":%}}`

func loginAt(expiry string) string { return strings.ReplaceAll(login, "%", expiry) }

func TestAnswersKeepClaudeFromAsking(t *testing.T) {
	w := newWorld(t)
	req := w.request()
	req.Trusted = []string{"/src/p", "/src/p/sub"}
	req.APIKey = " sk-ant-0123456789-0123456789abcdefghij \n"
	got := answers(t, w.session(req), ".claude.json")
	want := map[string]any{
		"hasCompletedOnboarding": true,
		"projects": map[string]any{
			"/src/p":     map[string]any{"hasTrustDialogAccepted": true},
			"/src/p/sub": map[string]any{"hasTrustDialogAccepted": true},
		},
		"customApiKeyResponses": map[string]any{"approved": []any{"0123456789abcdefghij"}, "rejected": []any{}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAnswersAreMergedIntoWhatIsThere(t *testing.T) {
	w := newWorld(t)
	w.write(".claude.json", `{"theme":"light","oauthAccount":{"emailAddress":"host@x"},"mcpServers":{"a":{"env":{"T":"canary"}}},"projects":{"/other":{}}}`)
	in := w.session(w.request())
	w.write(rel(w, in.Dir)+"/.claude/.claude.json", `{"numStartups":12345678901234567890,"theme":"dark","oauthAccount":{"emailAddress":"inside@x"},`+
		`"projects":{"/src/p":{"hasTrustDialogAccepted":false,"lastCost":1.50},"/src/p/wt":{"x":1}},`+
		`"customApiKeyResponses":{"approved":[],"rejected":["0123456789abcdefghij"]}}`)
	req := w.request()
	req.APIKey = "0123456789abcdefghij"
	w.session(req)
	got := w.read(rel(w, in.Dir) + "/.claude/.claude.json")
	for _, want := range []string{
		"12345678901234567890", `"theme": "dark"`, "inside@x", `"lastCost": 1.50`, `"hasTrustDialogAccepted": true`,
		`"hasCompletedOnboarding": true`, `"/src/p/wt"`, `"approved": []`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	for _, never := range []string{"canary", "/other", "host@x"} {
		if strings.Contains(got, never) {
			t.Errorf("%s of the host is in %s", never, got)
		}
	}
}

func TestHostsAccountEntersANewInstance(t *testing.T) {
	w := newWorld(t)
	w.write(".claude.json", `{"theme":"light","oauthAccount":{"emailAddress":"host@x"},"mcpServers":{"a":{"env":{"T":"canary"}}}}`)
	got := w.read(rel(w, w.session(w.request()).Dir) + "/.claude/.claude.json")
	if !strings.Contains(got, "host@x") || !strings.Contains(got, "light") || strings.Contains(got, "canary") {
		t.Errorf("got %s", got)
	}
}

// An earlier version copied what a later one takes for a secret.
func TestASecretInTheAccountOfAnOlderInstanceGoes(t *testing.T) {
	w := newWorld(t)
	file := rel(w, w.session(w.request()).Dir) + "/.claude/.claude.json"
	w.write(file, `{"oauthAccount":{"emailAddress":"old@x","accessToken":"hunter2canary"},"theme":"dark"}`)
	w.write(".claude.json", `{"oauthAccount":{"emailAddress":"host@x"}}`)
	w.session(w.request())
	if got := w.read(file); strings.Contains(got, "canary") || !strings.Contains(got, "host@x") || !strings.Contains(got, "dark") {
		t.Errorf("got %s", got)
	}
}

func TestSettingsEnterByAnAllowList(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/settings.json", `{"model":"opus","env":{"TOKEN":"canary"},"hooks":{"x":[{"hooks":[{"command":"away"}]}]},"statusLine":{"command":"away"},
		"apiKeyHelper":"canary","awsAuthRefresh":"canary","unheardOf":"canary","$schema":"s",
		"permissions":{"allow":["Bash(canary)"],"deny":["Read(x)"],"defaultMode":"plan"}}`)
	req := w.request()
	req.Runs = func(program string) string { return program + " is not inside" }
	in := w.session(req)
	want := map[string]any{
		"model": "opus", "skipDangerousModePermissionPrompt": true, "permissions": map[string]any{"deny": []any{"Read(x)"}},
	}
	if got := answers(t, in, "settings.json"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	notes := said(in)
	expect.Contains(t, notes, "hook of x", "statusLine", "apiKeyHelper", "awsAuthRefresh", "unheardOf")
	if strings.Contains(notes, "canary") || strings.Contains(notes, "schema") {
		t.Errorf("notes say too much: %q", notes)
	}
	again, err := state.Look(req)
	must.Do(t, err)
	if !slices.Equal(again.Left, in.Left) {
		t.Errorf("a warm launch leaves out %v", again.Left)
	}
}

func TestAChoiceMadeInsideStays(t *testing.T) {
	w := newWorld(t)
	in := w.session(w.request())
	w.write(rel(w, in.Dir)+"/.claude/settings.json", `{"model":"inside","theme":"x","hooks":{"SessionStart":[]},"skipDangerousModePermissionPrompt":false}`)
	w.write(".claude/settings.json", `{"theme":"host"}`)
	want := map[string]any{"model": "inside", "theme": "host", "hooks": map[string]any{"SessionStart": []any{}}, "skipDangerousModePermissionPrompt": true}
	if got := answers(t, w.session(w.request()), "settings.json"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBrokenSettingsDoNotStopTheLaunch(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/settings.json", `{"model":`)
	in := w.session(w.request())
	if len(in.Notes) != 1 || !strings.Contains(in.Notes[0], "no JSON object") {
		t.Errorf("notes %q", in.Notes)
	}
}

func TestMemoryIsTheUsersOwnOrAStandIn(t *testing.T) {
	w := newWorld(t)
	in := w.session(w.request())
	memory := rel(w, in.Dir) + "/.claude/CLAUDE.md"
	if w.read(memory) != w.read(".claudebox/CLAUDE.md") || w.read(memory) == "" {
		t.Error("the stand-in was not made")
	}
	w.write(".claudebox/CLAUDE.md", "changed by the user")
	w.session(w.request())
	if got := w.read(memory); got != "changed by the user" {
		t.Errorf("got %q", got)
	}
	w.write(memory, "changed inside")
	w.session(w.request())
	if got := w.read(memory); got != "changed inside" {
		t.Errorf("got %q", got)
	}
	w.write(".claude/CLAUDE.md", "the user's own")
	w.session(w.request())
	if got, kept := w.read(memory), w.read(memory+".inside-1"); got != "the user's own" || kept != "changed inside" {
		t.Errorf("got %q, kept %q", got, kept)
	}
	if got := w.read(".claude/CLAUDE.md"); got != "the user's own" {
		t.Errorf("the user's file holds %q", got)
	}
}

func TestASecretInTheUsersOwnFilesStaysOutside(t *testing.T) {
	w := newWorld(t)
	token := "ghp_kZ3vQ9xB7mT1wR5nL8pJ2hG6fD4sC0yAeUiO"
	w.write(".claude/CLAUDE.md", "be brief\npush with "+token+"\n")
	w.write(".claude/settings.json", `{"outputStyle":"`+token+`"}`)
	for range 2 { // the second launch reads none of it again
		in := w.session(w.request())
		notes := said(in)
		for _, want := range []string{"of your CLAUDE.md the lines do not enter that hold what", "your setting outputStyle does not enter: it holds what"} {
			if !strings.Contains(notes, want+" looks like a GitHub personal token") {
				t.Errorf("notes %q lack %s", notes, want)
			}
		}
		if strings.Contains(notes, token) {
			t.Error("the token is in the notes")
		}
		memory := w.read(rel(w, in.Dir) + "/.claude/CLAUDE.md")
		if memory != "be brief\n" {
			t.Errorf("inside is %q", memory)
		}
	}
}

func TestAUserWithAMemoryGetsNoStandIn(t *testing.T) {
	w := newWorld(t)
	w.write("store/CLAUDE.md", "from home-manager")
	must.Do(t, os.MkdirAll(w.path(".claude"), 0o700))
	must.Do(t, os.Symlink("../store/CLAUDE.md", w.path(".claude/CLAUDE.md")))
	in := w.session(w.request())
	if got := w.read(rel(w, in.Dir) + "/.claude/CLAUDE.md"); got != "from home-manager" {
		t.Errorf("got %q", got)
	}
	if _, err := os.Lstat(w.path(".claudebox/CLAUDE.md")); err == nil {
		t.Error("a stand-in was made")
	}
}

// A login stays outside, whatever was there before: inside are placeholders, or
// nothing.
func TestALoginStaysOutside(t *testing.T) {
	for name, tc := range map[string]struct {
		host, second, inside string // empty: no file; else when the login there ends
		apiKey               string
		unused               bool   // nothing leads to a broker
		want                 bool   // a placeholder is inside
		note                 string // about the login, in part
	}{
		"none anywhere":                     {},
		"the host's alone":                  {host: "5", want: true},
		"the second source alone":           {second: "5", want: true},
		"a broken one before the second":    {host: "x", second: "7", want: true, note: "does not enter: it is no JSON"},
		"one inside goes":                   {inside: "6"},
		"one inside gives way":              {host: "7", inside: "6", want: true},
		"with an API key":                   {host: "5", apiKey: "k"},
		"a host's file of another shape":    {host: "x", inside: "6", note: "it is no JSON"},
		"a broken one inside gives way":     {host: "5", inside: "x", want: true},
		"with an API key the one inside is": {host: "7", inside: "6", apiKey: "k"},
		"it is another agent":               {host: "5", unused: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.session(w.request())
			inside := rel(w, in.Dir) + "/.claude/.credentials.json"
			for file, expiry := range map[string]string{
				".claude/.credentials.json": tc.host, ".claudebox/.credentials.json": tc.second, inside: tc.inside,
			} {
				if expiry != "" {
					w.write(file, loginAt(expiry))
				}
			}
			req := w.request()
			req.APIKey = tc.apiKey
			if tc.unused {
				req.AskTokens = nil
			}
			in = w.session(req)
			got, _ := os.ReadFile(w.path(inside))
			if strings.Contains(string(got), "cbx") != tc.want || tc.inside != "x" && strings.Contains(string(got), `"accessToken":"`+tc.inside+`"`) {
				t.Errorf("inside is %q", got)
			}
			if info, err := os.Lstat(w.path(inside)); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("mode %o", info.Mode().Perm())
			}
			if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes, tc.note) || tc.note == "" && strings.Contains(notes, "login") {
				t.Errorf("notes %q, want %q", notes, tc.note)
			}
		})
	}
}

// Claude Code outside has its locks beside the link, so two would renew one login.
func TestALoginBehindALinkDoesNotEnter(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/.credentials.json", loginAt("5"))
	must.Do(t, os.Rename(w.path(".claude/.credentials.json"), w.path("elsewhere.json")))
	must.Do(t, os.Symlink("../elsewhere.json", w.path(".claude/.credentials.json")))
	in := w.session(w.request())
	if in.Login.Outside || !strings.Contains(strings.Join(in.Notes, "\n"), "it is a link") {
		t.Errorf("%+v, noted %q", in.Login, in.Notes)
	}
}

// What Claude Code remembers of a key is its end: no word of it stays either.
func TestTheEndOfAnAPIKeyGoesWithIt(t *testing.T) {
	w := newWorld(t)
	req := w.request()
	req.APIKey = "sk-ant-0123456789-0123456789abcdefghij"
	in := w.session(req)
	file := rel(w, in.Dir) + "/.claude/.claude.json"
	if !strings.Contains(w.read(file), "0123456789abcdefghij") {
		t.Fatal("the key was not approved of")
	}
	w.session(w.request())
	if got := w.read(file); strings.Contains(got, "abcdefghij") {
		t.Errorf("it is still there: %s", got)
	}
}

// A login that could not be written down is not used: renewed, it would be good
// nowhere.
func TestALoginInAReadOnlyFolderIsNotUsed(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere; checks/test runs this as an ordinary user")
	}
	w := newWorld(t)
	w.write(".claude/.credentials.json", loginAt("5"))
	must.Do(t, os.Chmod(w.path(".claude"), 0o500))
	defer os.Chmod(w.path(".claude"), 0o700)
	in := w.session(w.request())
	if _, err := os.Stat(in.Dir + "/.claude/.credentials.json"); err == nil {
		t.Error("it is inside")
	}
	if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes, "its folder cannot be written") {
		t.Errorf("notes %q", notes)
	}
}

func TestALoginThatHasEndedIsSaid(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/.credentials.json", `{"claudeAiOauth":{"accessToken":"","refreshToken":"","expiresAt":0}}`)
	if notes := strings.Join(w.session(w.request()).Notes, "\n"); !strings.Contains(notes, "has ended: log in anew") || strings.Contains(notes, "enters") {
		t.Errorf("notes %q", notes)
	}
}

// An unreadable login stops the launch: without it the agent would ask for a
// new one, and nobody would know why.
func TestAnUnreadableLoginIsAnError(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything; checks/test runs this as an ordinary user")
	}
	w := newWorld(t)
	w.write(".claude/.credentials.json", loginAt("5"))
	must.Do(t, os.Chmod(w.path(".claude/.credentials.json"), 0))
	_, err := state.Look(w.request())
	wantRefusal(t, err, "read your login "+w.path(".claude/.credentials.json")+": permission denied", "chmod 600")
	if _, err := os.Stat(w.path(".claudebox")); err == nil {
		t.Error("something was made")
	}
}

func TestImportsAreLinksToReadOnlyBinds(t *testing.T) {
	w := newWorld(t)
	w.write("dotfiles/agents/a.md", "a")
	must.Do(t, os.MkdirAll(w.path(".claude"), 0o700))
	must.Do(t, os.Symlink("../dotfiles/agents", w.path(".claude/agents")))
	w.write(".claude/skills/s/SKILL.md", "s")
	w.write(".claude/commands", "a file, not a folder")
	in := w.session(w.request())
	want := []state.Import{
		{Source: w.path("dotfiles/agents"), Destination: "/run/claudebox/import/agents", At: "agents", Own: w.path(".claude/agents"), Kind: "agent"},
		{Source: w.path(".claude/skills"), Destination: "/run/claudebox/import/skills", At: "skills", Own: w.path(".claude/skills"), Kind: "skill"},
	}
	if !slices.Equal(in.Imports, want) {
		t.Errorf("got %+v, want %+v", in.Imports, want)
	}
	link := filepath.Join(in.Dir, ".claude/agents")
	if text, err := os.Readlink(link); err != nil || text != want[0].Destination {
		t.Errorf("got %q, %v", text, err)
	}
	must.Do(t, os.Remove(w.path(".claude/agents")))
	w.session(w.request())
	if _, err := os.Lstat(link); err == nil {
		t.Error("a link without a folder behind it stays")
	}
}

func TestWhatLiesInAnImportsPlaceIsKeptAside(t *testing.T) {
	w := newWorld(t)
	in := w.session(w.request())
	w.write(rel(w, in.Dir)+"/.claude/agents/mine.md", "made inside")
	w.write(".claude/agents/a.md", "a")
	w.session(w.request())
	if got := w.read(rel(w, in.Dir) + "/.claude/agents.inside-1/mine.md"); got != "made inside" {
		t.Errorf("got %q", got)
	}
}

// said is all that an instance says.
func said(in state.Instance) string {
	texts := slices.Clone(in.Notes)
	for _, left := range in.Left {
		texts = append(texts, left.Text)
	}
	return strings.Join(texts, "\n")
}
