package audit

import (
	"slices"
	"strings"
	"testing"

	"claudebox/internal/plan"
	"claudebox/internal/profile/grant"
	"claudebox/internal/sandbox/launch"
)

// ofVersionOne is what an earlier build kept of [aLaunch].
const ofVersionOne = `["MCP server files","agent /bin/claude --yolo","git configuration readonly",
"mount hidden /h/empty at /h/p/keys","mount ro /h/p/.envrc at /h/p/.envrc","mount ro /nix/var/nix/daemon-socket at /nix/var/nix/daemon-socket",
"mount rw /srv/data at /data","network allow via http://proxy:1","network host a.example","network host b.example (may be in your own network)",
"nix daemon","nix store full","package jq 1.7","plan 00ff","port 3000 of this host leads inside","port 5432 inside leads to this host",
"profile work","protection default .envrc Makefile","secret GH_TOKEN is used for github.com","state project","variable A from host","variable B from const"]`

func aLaunch() launch.Launch {
	l := launch.Launch{
		Plan: plan.Plan{
			Profile: "work", State: "project", Cache: "project", Project: "git-root", Compat: "nix-ld", Confirm: "changed",
			Network: plan.Network{
				Tier: "allow", Allow: []string{"a.example", "b.example"}, Private: []string{"b.example"},
				Via: "http://proxy:1", In: []int{3000}, Out: []int{5432},
			},
			Nix: plan.Nix{Daemon: "host", Store: "full"}, Git: plan.Git{Config: "readonly"}, MCP: []string{"files"},
			Protect: plan.Protect{Mode: "default", Globs: []string{".envrc", "Makefile"}}, Hide: []string{"keys"},
			Limits: plan.Limits{Tasks: 100},
			Pins:   plan.Pins{Packages: []plan.Package{{Attr: "jq", Version: "1.7"}}},
		},
		Tier:    "allow",
		Setting: launch.Setting{Project: "/h/p", Agent: launch.Agent{Words: []string{"/bin/claude", "--yolo"}}},
		Outside: []launch.Outside{{Name: "GH_TOKEN", Hosts: []string{"github.com"}}},
		Env: []launch.Variable{
			{Env: plan.Env{Name: "A", From: plan.FromHost}}, {Env: plan.Env{Name: "B", From: plan.FromConst}},
		},
		Mounts: []launch.Mount{
			{Kind: plan.Bind, Source: "/h/p", Destination: "/h/p", Why: plan.Base},
			{Kind: plan.ROBind, Source: "/h/p/.envrc", Destination: "/h/p/.envrc", Why: "direnv"},
			{Kind: plan.ROBind, Source: "/h/empty", Destination: "/h/p/keys", Why: launch.WhyHidden},
			{Kind: plan.ROBind, Source: plan.DaemonSocketDir, Destination: plan.DaemonSocketDir, Why: "nix daemon"},
			{Kind: plan.Bind, Source: "/srv/data", Destination: "/data", Why: "--mount-rw"},
		},
	}
	return l
}

func asks(l launch.Launch, approved, now grant.Set) bool {
	return len(approved) == 0 || !Sides(l, approved, now).Within(func(string) bool { return false })
}

// Nobody is asked again because approvals are kept in another form; whoever would have been asked still is.
func TestAnApprovalOfVersionOneCounts(t *testing.T) {
	l := aLaunch()
	now := Grants(l, "00ff")
	approved := DecodeApproval([]byte(ofVersionOne), now)
	if changes := Sides(l, approved, now).Changes(); len(changes) > 0 {
		t.Errorf("changed: %q", View{}.told(changes))
	}
	for name, change := range map[string]func(*launch.Launch){
		"a variable":  func(l *launch.Launch) { l.Env[0].Name = "C" },
		"a host":      func(l *launch.Launch) { l.Plan.Network.Allow = append(l.Plan.Network.Allow, "c.example") },
		"its network": func(l *launch.Launch) { l.Plan.Network.Private = []string{"a.example"} },
		"a proxy":     func(l *launch.Launch) { l.Plan.Network.Via = "http://proxy:2" },
		"the tier":    func(l *launch.Launch) { l.Tier = "inet" },
		"a port":      func(l *launch.Launch) { l.Plan.Network.Out = []int{1} },
		"a server":    func(l *launch.Launch) { l.Plan.MCP = []string{"files", "mail"} },
		"the agent":   func(l *launch.Launch) { l.Agent.Words = []string{"/bin/other"} },
		"a glob":      func(l *launch.Launch) { l.Plan.Protect.Globs = []string{".envrc"} },
		"a mount":     func(l *launch.Launch) { l.Mounts[4].Source = "/srv/other" },
		"a cover":     func(l *launch.Launch) { l.Mounts = slices.Delete(l.Mounts, 2, 3) },
		"a secret":    func(l *launch.Launch) { l.Outside[0].Hosts = []string{"evil.example"} },
		"a package":   func(l *launch.Launch) { l.Plan.Pins.Packages[0].Version = "1.8" },
		"git":         func(l *launch.Launch) { l.Plan.Git.Config = "writable" },
		"the state":   func(l *launch.Launch) { l.Plan.State = "shared" },
		"the profile": func(l *launch.Launch) { l.Plan.Profile = "other" },
	} {
		l := aLaunch()
		change(&l)
		if now := Grants(l, "00ff"); !asks(l, DecodeApproval([]byte(ofVersionOne), now), now) {
			t.Errorf("%s changes, and nobody is asked", name)
		}
	}
	if now := Grants(l, "ffff"); !asks(l, DecodeApproval([]byte(ofVersionOne), now), now) {
		t.Error("another plan is not asked about")
	}
}

func TestAnApprovalIsReadAsItWasKept(t *testing.T) {
	l := aLaunch()
	now := Grants(l, "00ff")
	if got := DecodeApproval(EncodeApproval(now), nil); !slices.Equal(got, now) {
		t.Errorf("got %q", got)
	}
	for name, content := range map[string]string{
		"nothing": "", "a later version": strings.Replace(string(EncodeApproval(now)), `"version":2`, `"version":3`, 1),
		"half of it": string(EncodeApproval(now)[:40]), "no lines": "[]", "something else": `{"a":1}`,
	} {
		if got := DecodeApproval([]byte(content), now); got != nil {
			t.Errorf("%s: approved is %q", name, got)
		}
	}
}

// What version 1 did not say is asked about too: a protection less, a limit less, more of the user's keys.
func TestEverySettingThatLetsInMoreIsAskedAbout(t *testing.T) {
	approved := Grants(aLaunch(), "")
	for name, change := range map[string]func(*plan.Plan){
		"a pattern less is hidden": func(p *plan.Plan) { p.Hide = nil },
		"a file more is shown":     func(p *plan.Plan) { p.Show = []string{".env"} },
		"a host more for ssh":      func(p *plan.Plan) { p.Git.SSH = []string{"a.example"} },
		"git signs":                func(p *plan.Plan) { p.Git.Sign = "ssh" },
		"a higher limit":           func(p *plan.Plan) { p.Limits.Tasks = 200 },
		"no limit":                 func(p *plan.Plan) { p.Limits.Tasks = 0 },
		"a folder beside":          func(p *plan.Plan) { p.Worktrees = []string{"../a-*"} },
		"variables of a dev shell": func(p *plan.Plan) { p.Devshell.Vars = []string{"ANTHROPIC_*"} },
	} {
		l := aLaunch()
		change(&l.Plan)
		now := Grants(l, "")
		if !asks(l, approved, now) {
			t.Errorf("%s, and nobody is asked", name)
		}
		if asks(aLaunch(), now, approved) {
			t.Errorf("%s: to take it back is asked about", name)
		}
	}
}
