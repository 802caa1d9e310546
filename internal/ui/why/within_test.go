package why_test

import (
	"strconv"
	"strings"
	"testing"

	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/sandbox/view"
	"claudebox/internal/ui/why"
	"claudebox/internal/workspace/project"
)

func within(tier string) why.Within {
	var w why.Within
	w.Session, w.Home = "abcdefgh", "/home/u"
	l := &w.Launch
	l.Tier, l.Project = tier, "/home/u/p"
	l.Plan.Network = plan.Network{Tier: tier, Via: "http://proxy.corp:3128"}
	if tier == "allow" {
		l.Plan.Network.Allow, l.Plan.Network.Private = []string{"a.test", "git.corp"}, []string{"git.corp"}
	}
	l.Mounts = []launch.Mount{
		{Kind: plan.Tmpfs, Destination: "/", Why: plan.Base},
		{Kind: plan.Tmpfs, Destination: "/home/u", Why: plan.Base},
		{Kind: plan.Bind, Source: "/home/u/p", Destination: "/home/u/p", Why: plan.Base},
		{Kind: plan.Bind, Source: "/home/u/.claudebox/instances/x/.claude", Destination: "/home/u/.claude", Why: plan.Base},
		{Kind: plan.ROBind, Source: "/home/u/.claudebox/empty", Destination: "/home/u/p/keys", Why: launch.WhyHidden},
		{Kind: plan.ROData, Source: "/home/u/p/.env", Destination: "/home/u/p/.env", Why: launch.WhyHidden},
		{Kind: plan.ROBind, Source: "/home/u/p/.envrc", Destination: "/home/u/p/.envrc", Why: "the host runs it"},
	}
	return w
}

func ask(t *testing.T, w why.Within, question string) string {
	t.Helper()
	a, ok := w.Answer(question)
	if !ok {
		t.Errorf("%q is not answered", question)
	}
	return a.Answered()
}

// By its answers an agent learns neither what is in a hidden folder or outside, nor the proxy, private hosts and folders
// of the user's.
func TestAnAgentIsToldNothingOfTheHost(t *testing.T) {
	w := within("allow")
	for _, same := range [][2]string{
		{"path /home/u/p/keys/id_ed25519", "path /home/u/p/keys/nothing"},
		{"path /home/u/.aws/credentials", "path /home/u/.aws/nothing"},
		{"path /home/u/letter", "path /home/u/others"},
		{"path /home/u/p/x/y", "path /home/u/p/x/z"},
		{"host git.corp:443", "host a.test:443"},
	} {
		first := strings.NewReplacer("id_ed25519", "nothing", "credentials", "nothing", "letter", "others", "x/y", "x/z", "git.corp", "a.test").Replace(ask(t, w, same[0]))
		if second := ask(t, w, same[1]); first != second {
			t.Errorf("%s and %s are told apart:\n%s%s", same[0], same[1], first, second)
		}
	}
	if answer := ask(t, w, "path /home/u/p/keys/x/y"); !strings.Contains(answer, "is hidden") {
		t.Errorf("in a hidden folder: %s", answer)
	}
	for _, question := range []string{
		"host a.test", "host b.test", "host 10.0.0.1", "path /home/u/.claude/x", "path /home/u/p/keys", "path /home/u/p/.env", "path /home/u",
		"path /home/u/.claudebox", "path /", "program gh", "here /home/u/.claude/x", "here /home/u/p/keys/x", "here /home/u/p/.env", "here /home/u", "set GH_TOKEN",
	} {
		answer := ask(t, w, question)
		for _, secret := range []string{"proxy.corp", "instances", ".claudebox/empty", "own network too"} {
			if strings.Contains(answer, secret) {
				t.Errorf("%s tells %s:\n%s", question, secret, answer)
			}
		}
	}
}

// What a user could paste has nothing of the agent's choice but a plain host, address or path.
func TestACommandForTheUserHoldsNothingElse(t *testing.T) {
	for _, tier := range []string{"full", "inet", "allow", "none"} {
		w := within(tier)
		for _, question := range []string{
			"host b.test;id", "host b.test --yes", "host $(id)", "host `id`", "host b.test\x1b[31m", "host b.test\n", "host ../x", "host -x", "host *", "host *.test",
			"path relative", "path ", "path /x\x00", "path /a\nb", "program a/b", "program `id`", "program a;id", "program", "", "why x", "host " + strings.Repeat("a", 300), "host \u202e.test",
			"host b.test:99999", "host [::1", "host b.test:22:22", "path /tmp/\xff",
		} {
			a, ok := w.Answer(question)
			if ok && (strings.Contains(a.Change, "allow-host") || strings.Contains(a.Change, "--mount") || strings.Contains(a.Change, "id")) {
				t.Errorf("tier %s, %q: %s", tier, question, a.Change)
			}
		}
		for question, odd := range map[string]string{"path /opt/a b;id": "'/opt/a b;id'", "path /opt/$(id)": "'/opt/$(id)'", "path /opt/it's": `'/opt/it'\''s'`} {
			if a, _ := w.Answer(question); a.Change != "" && !strings.Contains(a.Change, odd) {
				t.Errorf("tier %s, %q: %s", tier, question, a.Change)
			}
		}
	}
}

// What a user could paste shows, mounts or opens no more than what the question names.
func TestACommandForTheUserWidensNoMoreThanItSays(t *testing.T) {
	w := within("inet")
	for _, name := range []string{".env", "*/.env", "**/.env", "?/[a-z]", "!a/x", `\\*`, "[!a]/k"} {
		w.Launch.Mounts = append(w.Launch.Mounts, launch.Mount{Kind: plan.ROData, Source: "/x", Destination: "/home/u/p/" + name, Why: launch.WhyHidden})
		a, _ := w.Answer("path /home/u/p/" + name)
		text, _, _ := strings.Cut(strings.TrimPrefix(a.Change, "`show: ["), "]` in the profile")
		pattern, err := strconv.Unquote(text)
		if err != nil {
			t.Errorf("%s: %q", name, a.Change)
		}
		if !project.Matches([]string{pattern}, name, true) || project.Matches([]string{pattern}, "a/b/.env", true) ||
			project.Matches([]string{pattern}, "b/.env", true) || project.Matches([]string{pattern}, "b/k", true) {
			t.Errorf("%s: %q", name, pattern)
		}
	}
	for _, question := range []string{"path /home/u/.ssh:/mnt/x", "path /srv/a:/mnt/b", "host 2606:4700::1%;{id,/x}", "host [fe80::1%$(id)]:443"} {
		if a, _ := w.Answer(question); strings.Contains(a.Change, "--mount") || strings.Contains(a.Answered(), "%") {
			t.Errorf("%q: %s", question, a.Answered())
		}
	}
}

// The name of a variable was answered as that of a program that is missing, and `, GH_TOKEN` was said to look for one.
func TestAnAgentIsToldOfAVariable(t *testing.T) {
	w := within("full")
	w.Launch.Env = []launch.Variable{{Env: plan.Env{Name: "LANG", Why: plan.Base}, Value: "C.UTF-8"}}
	if got := ask(t, w, "program LANG"); !strings.HasPrefix(got, "yes:     LANG is a variable") || strings.Contains(got, "C.UTF-8") {
		t.Error(got)
	}
	got := ask(t, w, "program GH_TOKEN")
	if !strings.HasPrefix(got, "no:") || !strings.Contains(got, "extra_env_passthrough: [GH_TOKEN]") || strings.Contains(got, ", GH_TOKEN`") {
		t.Error(got)
	}
	if got := ask(t, w, "program 7Z"); !strings.Contains(got, "is not installed inside") {
		t.Error(got)
	}
}

// A rule told the name of a profile that the session's extends, and the name of the user's terminal.
func TestAnAgentIsToldNoNameByARule(t *testing.T) {
	w := within("full")
	w.Launch.Mounts = append(w.Launch.Mounts, launch.Mount{Kind: plan.ROBind, Source: "/srv/x", Destination: "/srv/x", Why: "profile globex-merger:4"})
	w.Launch.Env = []launch.Variable{
		{Env: plan.Env{Name: "A", From: plan.FromHost, Why: "profile globex-merger:5"}},
		{Env: plan.Env{Name: "TERM", From: plan.FromMade, Why: "xterm-globex is not known inside"}},
		{Env: plan.Env{Name: "KEY", From: plan.FromMade, Why: "a placeholder, for api.test"}},
	}
	for question, rule := range map[string]string{
		"here /srv/x": "the profile", "path /srv/x/y": "the profile", "program A": "the profile", "set A": "the profile", "program TERM": "base",
		"program KEY": "a placeholder, for api.test",
	} {
		if got := ask(t, w, question); strings.Contains(got, "globex") || !strings.Contains(got, "rule:    "+rule+"\n") {
			t.Errorf("%s: %s", question, got)
		}
	}
}

// What was there was said not to be, and what was not there to be: paths of a store that is the closure, of /tmp, /dev, links.
func TestAnAnswerIsTrueOfWhatIsThere(t *testing.T) {
	w := within("inet")
	w.Launch.Mounts = append(w.Launch.Mounts, launch.Mount{Kind: plan.Closure, Destination: "/nix/store", Why: plan.Base},
		launch.Mount{Kind: plan.Tmpfs, Destination: "/tmp", Why: plan.Base}, launch.Mount{Kind: plan.Dev, Destination: "/dev", Why: plan.Base})
	for question, want := range map[string]string{
		"here /nix/store/abc-x/bin/x": "yes:     /nix/store/abc-x/bin/x is read-only here",
		"path /nix/store/abd-y":       "no:      /nix/store/abd-y is not mounted",
		"here /tmp":                   "yes:     /tmp is a folder of the sandbox's own",
		"here /tmp/made":              "yes:     /tmp/made was made inside",
		"path /tmp/not":               "no:      /tmp/not is not there: /tmp is a folder of the sandbox's own",
		"here /dev/null":              "yes:     /dev/null is the sandbox's own here",
		"path /dev/sda":               "no:      the sandbox has processes and devices of its own, and /dev/sda is none",
		"here /home/u/p/x":            "yes:     ~/p/x is here, read-write",
		"path /home/u/p/x":            "no:      nothing is at ~/p/x, which would be read-write, and nothing is hidden there",
		"path /home/u/.claude/x":      "no:      nothing is at ~/.claude/x, which would be read-write\n",
		"here /home/u/p/.env":         "no:      ~/p/.env is hidden",
		"set X_Y":                     "yes:     X_Y was set inside",
		"set http_proxy":              "yes:     http_proxy was set inside",
		"program 3000":                "unknown: 3000 is no program inside",
		"program docker":              why.Program("docker", "", view.Remedy("docker")).Text(400)[:40],
		"program claudebox":           "no:      claudebox is outside",
		"host 169.254.169.254":        "no:      169.254.169.254 is link-local, with the metadata service of clouds\nrule:    network: inet\n",
	} {
		got := ask(t, w, question)
		if question == "program docker" { // the same as outside, but for the width of the first column
			got = strings.Replace(got, "no:      ", "no:     ", 1)
		}
		if !strings.HasPrefix(got, want) || strings.Contains(got, "except:") {
			t.Errorf("%s:\n%s", question, got)
		}
	}
	if got := ask(t, w, "program 3000"); strings.Contains(got, "outside") {
		t.Error(got)
	}
	w.Launch.Tier = "none"
	for host, tier := range map[string]string{"10.0.0.1:80": "full", "8.8.8.8": "inet", "a.test": "inet"} {
		if got := ask(t, w, "host "+host); !strings.Contains(got, "claudebox --network "+tier+"\n") {
			t.Error(got)
		}
	}
	w.Launch.Branch = "feat"
	if got := ask(t, w, "path /home/u/p/x"); !strings.Contains(got, "not on branch feat") || !strings.Contains(got, "--with PATH") {
		t.Error(got)
	}
	if got := ask(t, w, "here /home/u/p/x"); !strings.HasPrefix(got, "yes:") || strings.Contains(got, "--with") {
		t.Error(got)
	}
}
