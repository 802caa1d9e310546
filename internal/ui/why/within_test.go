package why_test

import (
	"strconv"
	"strings"
	"testing"

	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
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
		"path /home/u/.claudebox", "path /", "program gh",
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
	if got := ask(t, w, "program 7Z"); !strings.Contains(got, "is not installed here") {
		t.Error(got)
	}
}
