//go:build lab

package network_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/checks/promises/network/world"
)

// other is the same user in another project.
func (u *user) other(t *testing.T) *user {
	t.Helper()
	other := *u
	other.project = filepath.Join(u.home, "other")
	must.Do(t, os.Mkdir(other.project, 0o755))
	return &other
}

// waiting runs a session that asks for a URL, waits for the file "go", and asks again.
func (u *user) waiting(t *testing.T, url string, flags ...string) <-chan outcome {
	t.Helper()
	const script = `ask() { curl -sS --max-time 20 "$1" 2>&1 || true; }
		echo "before: $(ask $URL)"; touch tried; until [ -e go ]; do sleep 0.05; done; echo "after: $(ask $URL)"`
	ended := make(chan outcome)
	cmd := u.session(t, strings.ReplaceAll(script, "$URL", url), flags...)
	go func() { ended <- run(t, cmd) }()
	u.await(t, "tried")
	return ended
}

// await waits for a file in the project.
func (u *user) await(t *testing.T, name string) {
	t.Helper()
	must.Appear(t, filepath.Join(u.project, name))
}

// goOn lets a session of [user.waiting] ask again, and returns what it printed.
func (u *user) goOn(t *testing.T, session <-chan outcome) string {
	t.Helper()
	must.Write(t, filepath.Join(u.project, "go"), "")
	got := <-session
	for _, name := range []string{"go", "tried"} {
		_ = os.Remove(filepath.Join(u.project, name))
	}
	return got.stdout + got.stderr
}

// What the user allows counts at once, in the sessions that were meant, and in no other.
func TestAHostIsAllowedWhileASessionRuns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		profile     string
		url         string
		words       []string // of allow-host
		before      string
		after, said string
		kept        string // what the profile holds afterwards
	}{
		"for the session, tier allow": {
			"network: {tier: allow, allow: [good.test]}", "http://sub.good.test/",
			[]string{"--session", "sub.good.test"},
			"curl: (6)", "internet 6", "(tier allow) reaches it now: sub.good.test", "allow: [good.test]",
		},
		"for good, tier allow": {
			"network: {tier: allow, allow: [good.test]}", "http://sub.good.test/",
			[]string{"sub.good.test"},
			"curl: (6)", "internet 6", "(tier allow) reaches it now: sub.good.test", "allow: [sub.good.test, good.test]",
		},
		"it is listed since": {
			"network: {tier: allow, allow: [good.test]}", "http://good.test/",
			[]string{"good.test"},
			"internet 6", "internet 6", "lists all of them", "allow: [good.test]",
		},
		"for the session, tier inet": {
			"network: inet", "http://192.168.77.2/",
			[]string{"--session", "192.168.77.2:80"},
			"curl: (7)", "LAN", "(tier inet) reaches it now: 192.168.77.2:80", "network: inet",
		},
		"for good, tier inet": {
			"network: {tier: inet, except: [\"192.168.88.2\"]}", "http://192.168.77.2/",
			[]string{"192.168.77.2:80"},
			"curl: (7)", "LAN", "(tier inet) reaches it now: 192.168.77.2:80", `except: ["192.168.77.2:80", "192.168.88.2"]`,
		},
		"another port, tier inet": {
			"network: inet", "http://192.168.77.2/", []string{"--session", "192.168.77.2:22"}, "curl: (7)", "curl: (7)", "reaches it now", "network: inet",
		},
		"this machine, tier inet": {
			"network: inet", "http://192.168.77.10:8080/",
			[]string{"--session", "127.0.0.1:8080"},
			"curl: (7)", "curl: (7)", "it is this machine itself", "network: inet",
		},
		"this machine's address, tier inet": {
			"network: inet", "http://192.168.77.10:8080/",
			[]string{"--session", "192.168.77.10:8080"},
			"curl: (7)", "curl: (7)",
			"write `ports: {out: [8080]}` in the profile", "network: inet",
		},
		"this machine's address for good, tier inet": {
			"network: inet", "http://192.168.77.10:8080/",
			[]string{"192.168.77.10"},
			"curl: (7)", "curl: (7)",
			"remedy: write `ports: {out: [PORT]}` in the profile", "network: inet",
		},
		"a name that leads home, tier allow": {
			"network: {tier: allow, allow: [good.test]}", "http://rebind.test/", []string{"--session", "rebind.test"}, "curl: (6)", "curl: (7)", "reaches it now", "",
		},
		"an address, tier allow": {
			"network: {tier: allow, allow: [good.test]}", "http://203.0.113.10/", []string{"--session", "203.0.113.10"}, "curl: (7)", "curl: (7)", "203.0.113.10", "",
		},
		"a whole domain, tier allow": {
			"network: {tier: allow, allow: [good.test]}", "http://other.test/", []string{"--session", "*.test"}, "curl: (6)", "curl: (6)", "top-level domain", "",
		},
		"tier none": {
			"network: none", "http://good.test/", []string{"--session", "good.test"}, "curl: (6)", "curl: (6)", "tier none has no network", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, world.New(t))
			flags := u.profile(t, tc.profile+"\nnix: {daemon: off}")
			other := u.other(t)
			there := other.waiting(t, tc.url, flags...)
			here := u.waiting(t, tc.url, flags...)
			asked := run(t, u.claudebox(t, slices.Concat([]string{"allow-host", "--yes"}, flags, tc.words)...))
			if said := asked.stdout + asked.stderr; !strings.Contains(said, tc.said) {
				t.Errorf("allow-host says %q", said)
			}
			if got := u.goOn(t, here); !strings.Contains(got, "before: "+tc.before) || !strings.Contains(got, "after: "+tc.after) {
				t.Errorf("the session: %s", got)
			}
			if got := other.goOn(t, there); !strings.Contains(got, "after: "+tc.before) {
				t.Errorf("the session of another project: %s", got)
			}
			if text, err := os.ReadFile(flags[1]); err != nil || !strings.Contains(string(text), tc.kept) {
				t.Errorf("the profile is %s, %v", text, err)
			}
		})
	}
}

// A project's own profile lists fewer hosts than the user's. Another host in the user's would not count in a new launch.
func TestWhatAProjectsProfileTakesAwayIsNotOpened(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ own, after, said string }{
		"it lists fewer":       {"network: {tier: allow, allow: !replace [good.test]}", "curl: (6)", "narrows the network"},
		"it narrows the tier":  {"network: none", "curl: (6)", "tier none has no network"},
		"it takes nothing":     {"packages: []", "internet 6", "reaches it now"},
		"it asks for more":     {"network: {allow: [other.test]}", "internet 6", "reaches it now"},
		"it is no profile now": {"network: [", "curl: (6)", "does not take it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, world.New(t))
			flags := u.profile(t, "network: {tier: allow, allow: [good.test, rebind.test]}\nnix: {daemon: off}")
			own := filepath.Join(u.project, ".claudebox.yaml")
			late := strings.HasSuffix(name, "now") // else the session would not begin
			if !late {
				must.Write(t, own, tc.own+"\n")
			}
			session := u.waiting(t, "http://sub.good.test/", flags...)
			if late {
				must.Write(t, own, tc.own+"\n")
			}
			asked := run(t, u.claudebox(t, slices.Concat([]string{"allow-host", "--yes"}, flags, []string{"sub.good.test"})...))
			if said := asked.stdout + asked.stderr; !strings.Contains(said, tc.said) {
				t.Errorf("allow-host says %q", said)
			}
			if got := u.goOn(t, session); !strings.Contains(got, "after: "+tc.after) {
				t.Errorf("the session: %s", got)
			}
		})
	}
}

// Even a user who lets the agent see claudebox's own folder does not let it open its sandbox.
func TestNoAgentOpensItsOwnSandbox(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	const script = `place=/opt/own/live; ls $place/* 2>/dev/null || exit 3
		for file in $place/*; do curl -sS --max-time 5 --unix-socket $file -d '{"open":{"allow":["sub.good.test"]}}' http://x/ 2>&1 || true; done
		python3 - <<'END'
import glob, os, socket
for file in glob.glob("/opt/own/live/*"):
    s = socket.socket(socket.AF_UNIX)
    s.connect(file)
    s.send(b'{"open":{"allow":["sub.good.test"]}}\n')
    print(s.recv(4096))
END
		curl -sS http://sub.good.test/ 2>&1 || true`
	plain := u.profile(t, "network: {tier: allow, allow: [good.test]}")
	if got := run(t, u.session(t, script, plain...)); got.status != 3 {
		t.Errorf("a sandbox sees the place: %+v", got)
	}
	lent := u.profile(t, "network: {tier: allow, allow: [good.test]}\nmounts: [{host: ~/.claudebox, sandbox: /opt/own, mode: ro, secret: true}]")
	got := run(t, u.session(t, script, lent...))
	if !strings.Contains(got.stdout, "you are not outside of all sandboxes") || !strings.Contains(got.stdout, "curl: (6)") {
		t.Errorf("%+v", got)
	}
}

// watching runs `claudebox watch --json` until its sessions have ended. Its events come as they are told.
func (u *user) watching(t *testing.T, words ...string) <-chan event {
	t.Helper()
	cmd := u.claudebox(t, append([]string{"watch", "--json"}, words...)...)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	events := make(chan event, 10_000)
	go func() {
		defer close(events)
		for lines := json.NewDecoder(out); ; {
			var e event
			if lines.Decode(&e) != nil {
				_ = cmd.Wait()
				return
			}
			events <- e
		}
	}()
	return events
}

type event struct {
	Event, What, Why, Host string
	Count                  int
	ForSession             string `json:"for_this_session"`
	ForGood                string `json:"for_good"`
}

// next is the next event that has a kind.
func next(t *testing.T, events <-chan event, kind string) event {
	t.Helper()
	for deadline := time.After(trial.Patience); ; {
		select {
		case e, more := <-events:
			if !more {
				t.Fatalf("the end came before an event %s", kind)
			}
			if e.Event == kind {
				return e
			}
		case <-deadline:
			t.Fatalf("there is no event %s", kind)
		}
	}
}

// As a user works: what is refused is seen in another terminal, and the command that is shown there opens it.
func TestWatchShowsTheCommandThatOpens(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	flags := u.allowing(t, "good.test")
	session := u.waiting(t, "http://sub.good.test/", flags...)
	events := u.watching(t)
	e := next(t, events, "refused")
	if e.What != "sub.good.test" || e.Host != "sub.good.test" || e.ForGood != "claudebox allow-host sub.good.test -P "+flags[1] {
		t.Errorf("%+v", e)
	}
	words := strings.Fields(e.ForSession)
	cmd := u.claudebox(t, append(words[1:], "--yes")...)
	cmd.Dir = u.home // from anywhere
	if got := run(t, cmd); got.status != 0 {
		t.Errorf("%+v", got)
	}
	if e := next(t, events, "allowed"); e.What != "sub.good.test" {
		t.Errorf("%+v", e)
	}
	if got := u.goOn(t, session); !strings.Contains(got, "after: internet 6") {
		t.Errorf("the session: %s", got)
	}
	if e := next(t, events, "reached"); e.What != "sub.good.test:80" {
		t.Errorf("%+v", e)
	}
	next(t, events, "ended")
	if e, more := <-events; more {
		t.Errorf("after the end: %+v", e)
	}
}

// An address of this machine cannot be opened, and the command that would was shown all the same.
func TestWatchShowsNoCommandForThisMachine(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	session := u.waiting(t, "http://192.168.77.10:8080/", u.profile(t, "network: inet\nnix: {daemon: off}")...)
	e := next(t, u.watching(t), "refused")
	if e.What != "192.168.77.10:8080" || e.Host != "" || e.ForSession != "" || e.ForGood != "ports: {out: [8080]} in the profile" {
		t.Errorf("%+v", e)
	}
	u.goOn(t, session)
}

// A name of the agent's neither writes on the user's terminal nor begins a line, and offers no command.
func TestNoNameMakesWatchLie(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	flags := u.allowing(t, "good.test")
	const script = `touch tried; until [ -e go ]; do sleep 0.05; done
		curl -s $'http://e\e[31mvil.test/' $'http://x.test\n12:00:00  abcdefgh  allowed    evil.test/' || true
		python3 - <<'END'
import socket, struct
def ask(*labels):
    name = b"".join(bytes([len(l)]) + l for l in labels) + b"\0"
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    server = [l.split()[1] for l in open("/etc/resolv.conf") if l.startswith("nameserver")][0]
    s.sendto(struct.pack(">HHHHHH", 1, 0x100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1), (server, 53))
    try: s.recv(1000)
    except OSError: pass
ask(b"a\x1b]52;c;AAAA\x07", b"test")
ask(b"b\n12:00:00  allowed", b"test")
ask(b"c; rm -rf ~", b"test")
ask("e\u202egpj".encode(), b"test")
ask(b"*", b"good", b"test")
END
		until [ -e done ]; do sleep 0.05; done`
	session := make(chan outcome)
	cmd := u.session(t, script, flags...)
	go func() { session <- run(t, cmd) }()
	u.await(t, "tried")
	watch := make(chan outcome)
	plain := u.claudebox(t, "watch")
	go func() { watch <- run(t, plain) }()
	events := u.watching(t)
	must.Write(t, filepath.Join(u.project, "go"), "")
	for range 5 {
		e := next(t, events, "refused")
		if e.ForSession != "" || strings.ContainsFunc(e.What+e.Why, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%+v", e)
		}
	}
	must.Write(t, filepath.Join(u.project, "done"), "")
	<-session
	shown := regexp.MustCompile(`^\d\d:\d\d:\d\d  [a-z2-7]{8}  (refused    |ended$)`)
	for line := range strings.Lines((<-watch).stdout) {
		if line = strings.TrimSuffix(line, "\n"); !shown.MatchString(line) || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("watch shows %q", line)
		}
	}
}

// However many names an agent asks for, what it was refused before and reaches after that is seen.
func TestAFloodHidesNothingFromWatch(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	flags := u.allowing(t, "good.test")
	const script = `curl -s http://first.test/ || true; touch tried; until [ -e go ]; do sleep 0.05; done
		python3 -c '
import socket
for n in range(3000):
    try: socket.getaddrinfo(f"x{n}.test", 80)
    except OSError: pass
'
		curl -s http://good.test/; until [ -e done ]; do sleep 0.05; done`
	session := make(chan outcome)
	cmd := u.session(t, script, flags...)
	go func() { session <- run(t, cmd) }()
	u.await(t, "tried")
	events := u.watching(t)
	if e := next(t, events, "refused"); e.What != "first.test" {
		t.Errorf("%+v", e)
	}
	must.Write(t, filepath.Join(u.project, "go"), "")
	if e := next(t, events, "reached"); e.What != "good.test:80" {
		t.Errorf("%+v", e)
	}
	must.Write(t, filepath.Join(u.project, "done"), "")
	<-session
	listed, more := 0, 0
	for e := range events {
		switch e.Event {
		case "refused":
			listed++
		case "more":
			more += e.Count
		}
	}
	if listed > 100 || more == 0 {
		t.Errorf("%d refusals are listed after the flood, and %d counted", listed, more)
	}
}

// asking runs claudebox-why for each word, and returns the answers by word.
func (u *user) asking(t *testing.T, flags []string, words ...string) map[string]string {
	t.Helper()
	var script strings.Builder
	for _, word := range words {
		script.WriteString("echo '=== " + word + "'; claudebox-why '" + word + "' 2>&1 || true; sleep 0.05\n")
	}
	got := run(t, u.session(t, script.String(), flags...))
	answers := map[string]string{}
	for part := range strings.SplitSeq(got.stdout, "=== ") {
		word, answer, _ := strings.Cut(part, "\n")
		answers[word] = answer
	}
	return answers
}

// The agent asks by itself why something is not there, and gets the command for the user.
func TestTheAgentIsToldWhy(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	must.Write(t, filepath.Join(u.project, ".env"), "SECRET=x")
	must.Write(t, filepath.Join(u.project, "kept.txt"), "x")
	must.Do(t, os.MkdirAll(filepath.Join(u.home, ".aws"), 0o700))
	must.Write(t, filepath.Join(u.home, ".aws/credentials"), "x")
	must.Write(t, filepath.Join(u.home, "there.txt"), "x")
	must.Do(t, os.Symlink(filepath.Join(u.home, "there.txt"), filepath.Join(u.project, "away")))
	const session = "outside: claudebox allow-host --session="
	for tier, tc := range map[string]struct {
		profile string
		want    map[string][]string // parts of each answer
	}{
		"allow": {"network: {tier: allow, allow: [good.test, \"*.sub.test:8443\"]}\nprotect: [kept.txt]", map[string][]string{
			"good.test":                {"yes:", "is on the list"},
			"https://good.test/x":      {"yes:", "is on the list"},
			"good.test:22":             {"no:", "not on the list", session, " good.test:22\n"},
			"other.test":               {"no:", "not on the list", "rule:    network: allow", session, " other.test\n", "Stop trying"},
			"http://other.test/a?b":    {"no:", session, " other.test\n"},
			"a.sub.test:8443":          {"yes:"},
			"a.sub.test":               {"no:", session, " a.sub.test\n"},
			"203.0.113.10":             {"no:", "names only"},
			"[2001:db8::1]:80":         {"no:", "names only"},
			"localhost:3000":           {"no:", "is the sandbox itself", "`ports: {out: [3000]}`"},
			"intranet:80":              {"no:", "not on the list"},
			"~/.aws/credentials":       {"no:", "~/.aws is where secrets lie"},
			"~/.aws/nothing":           {"no:", "~/.aws is where secrets lie"},
			"~/.ssh":                   {"no:", "where secrets lie"},
			"~/there.txt":              {"no:", "not mounted", "claudebox --mount-ro " + u.home + "/there.txt"},
			"~/not-there.txt":          {"no:", "not mounted", "claudebox --mount-ro " + u.home + "/not-there.txt"},
			".env":                     {"no:", "is hidden", "rule:    it looks secret", "`show: [\"./.env\"]`"},
			"./kept.txt":               {"yes:", "read-only", "rule:"},
			"./nothing":                {"no:", "nothing is at ~/", "read-write", "nothing is hidden there"},
			"away":                     {"no:", "not mounted", "claudebox --mount-ro " + u.home + "/there.txt", "link:    " + u.project + "/away leads to " + u.home + "/there.txt"},
			"git@good.test:x/y":        {"no:", " good.test:22\n"},
			"~/.claude/settings.json":  {"yes:"},
			"/etc/shadow":              {"no:", "not mounted"},
			"/nix/store":               {"yes:", "read-only"},
			"/run/claudebox/why":       {"yes:"},
			"/tmp":                     {"yes:", "of the sandbox's own"},
			"/dev/sda":                 {"no:", "none of them"},
			"PATH":                     {"yes:", "a variable that enters"},
			"bash":                     {"yes:", "is a program here, /nix/store/"},
			"claudebox-why":            {"yes:", "is a program here, /run/claudebox/bin/"},
			"terraform":                {"no:", "not installed", "outside: "},
			"sudo":                     {"no:", "rights"},
			"claudebox":                {"no:", "is outside"},
			"GH_TOKEN":                 {"no:", "is no variable that enters", "extra_env_passthrough: [GH_TOKEN]"},
			"-x":                       {"usage: claudebox-why"},
			"good.test; touch x":       {"unknown:"},
			"https://user@other.test/": {"no:", " other.test\n"},
		}},
		"inet": {"network: inet", map[string][]string{
			"good.test":         {"yes:", "unless its name leads to a private address"},
			"192.168.77.2:80":   {"no:", "private", session, " 192.168.77.2:80\n", "`ports: {out: [80]}`"},
			"192.168.77.10":     {"no:", session},
			"198.51.100.7":      {"yes:", "own network", "claudebox allow-host --session="},
			"203.0.113.10":      {"yes:", "unless it is of the user's own network"},
			"169.254.169.254":   {"no:", "metadata"},
			"127.0.0.1:5432":    {"no:", "`ports: {out: [5432]}`"},
			"[fd00:77::5]:8080": {"no:", " [fd00:77::5]:8080\n", "`ports: {out: [8080]}`"},
		}},
		"none": {"network: none", map[string][]string{
			"good.test": {"no:", "no network", "outside: claudebox --network inet"},
		}},
	} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			v := *u
			flags := v.profileIn(t, tier+".yaml", tc.profile+"\nnix: {daemon: off}")
			answers := v.asking(t, flags, slices.Sorted(maps.Keys(tc.want))...)
			for word, parts := range tc.want {
				for _, part := range parts {
					if !strings.Contains(answers[word], part) {
						t.Errorf("%s: there is no %q in\n%s", word, part, answers[word])
					}
				}
			}
		})
	}
}

// What the user allowed since counts in the answers, and the status line counts what was refused.
func TestTheAnswersInsideFollowTheSession(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	flags := u.allowing(t, "good.test")
	const script = `claudebox-why --refusals; claudebox-why other.test || true; curl -s http://other.test/ || true; sleep 1.1; claudebox-why --refusals
		touch tried; until [ -e go ]; do sleep 0.05; done; claudebox-why other.test`
	session := make(chan outcome)
	cmd := u.session(t, script, flags...)
	go func() { session <- run(t, cmd) }()
	u.await(t, "tried")
	if got := run(t, u.claudebox(t, "allow-host", "--yes", "--session", "other.test")); got.status != 0 { // it runs alone
		t.Errorf("%+v", got)
	}
	got := u.goOn(t, session)
	if !strings.HasPrefix(got, "no:") || !strings.Contains(got, "\n1 refused\nyes:     other.test is on the list") {
		t.Errorf("inside:\n%s", got)
	}
}
