package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/golden"
	"claudebox/internal/diag"
	"claudebox/internal/diag/layout"
	"claudebox/internal/plan"
	"claudebox/internal/profile/grant"
	"claudebox/internal/sandbox/launch"
)

// fiveProfiles are launches as people have them.
func fiveProfiles() map[string]launch.Launch {
	base := func(change func(*launch.Launch)) launch.Launch {
		l := launch.Launch{
			Plan:    plan.Plan{Profile: "default", State: "project", Nix: plan.Nix{Store: "full"}},
			Setting: launch.Setting{Project: "/home/u/src/shop", Agent: launch.Agent{Words: []string{"/home/u/.local/bin/claude"}}},
			Tier:    "full",
			Mounts: []launch.Mount{
				{Kind: plan.Bind, Source: "/home/u/.claudebox/instances/00ff/.claude", Destination: "/home/u/.claude", Why: plan.Base},
				{Kind: plan.Bind, Source: "/home/u/src/shop/.git", Destination: "/home/u/src/shop/.git", Why: "git runs what it names"},
			},
		}
		for i := range 24 {
			l.Plan.Pins.Packages = append(l.Plan.Pins.Packages, plan.Package{Attr: fmt.Sprint("p", i), Why: plan.Base})
		}
		change(&l)
		return l
	}
	secrets := func(l *launch.Launch) {
		l.Plan.Profile = "work"
		l.Agent.Words[0] = store + "claude-code-2.1.0/bin/claude"
		l.Env = example().Env
		l.Mounts = append(l.Mounts, example().Mounts[2:4]...)
		l.Mounts = append(l.Mounts, launch.Mount{Kind: plan.Bind, Source: "/home/u/src/shop/kept-in-its-place", Destination: "/home/u/src/shop/kept-in-its-place", Why: launch.WhyHidden})
		for _, name := range []string{".env", "conf/key.pem", "deploy/prod/terraform.tfstate", "deploy/stage/terraform.tfstate"} {
			l.Mounts = append(l.Mounts, launch.Mount{Kind: plan.ROData, Destination: "/home/u/src/shop/" + name, Why: launch.WhyHidden})
		}
		l.Plan.Pins.Packages = append(example().Plan.Pins.Packages[:1:1], l.Plan.Pins.Packages...)
	}
	allow := func(l *launch.Launch) {
		l.Tier = "allow"
		l.Plan.Network = plan.Network{Tier: "allow", Out: []int{5432}, In: []int{3000, 8080}, Allow: strings.Fields(
			"api.anthropic.com:443 *.github.com:443 registry.example:443 proxy.golang.example:443 static.crates.example:443")}
	}
	return map[string]launch.Launch{
		"default": base(func(*launch.Launch) {}),
		"secrets": base(secrets),
		"allow":   base(allow),
		"closure": base(func(l *launch.Launch) { l.Plan.Nix.Store, l.Closure, l.Tier = "closure", make([]string, 400), "none" }),
		"left": base(func(l *launch.Launch) {
			for kind, count := range map[string]int{"hook": 2, "status line": 1, "MCP server": 3, "skill": 12, "import": 2, "git setting": 4} {
				for range count {
					l.Left = append(l.Left, diag.Left{Kind: kind, Text: "your " + kind + " does not enter: because"})
				}
			}
			slices.SortFunc(l.Left, func(a, b diag.Left) int { return strings.Compare(a.Kind, b.Kind) })
			l.Left = append(l.Left, diag.Left{Kind: "git filter", Text: "git refuses what needs filter.lfs.clean", Red: true})
		}),
		"everything": base(func(l *launch.Launch) {
			l.Left = []diag.Left{{Kind: "hook", Text: "your hook does not enter"}}
			secrets(l)
			allow(l)
			l.Plan.Nix.Store, l.Closure = "closure", make([]string, 400)
			for i := range 30 {
				l.Mounts = append(l.Mounts, launch.Mount{Kind: plan.Bind, Source: fmt.Sprint("/srv/", i), Destination: fmt.Sprint("/srv/", i), Why: "--mount-rw"})
				l.Notes = append(l.Notes, "a remark")
				l.Warnings = append(l.Warnings, fmt.Sprintf("warning %d: %s", i, strings.Repeat("something red ", 10)))
			}
		}),
	}
}

func TestTheQuestionFitsIntoATerminal(t *testing.T) {
	for name, l := range fiveProfiles() {
		var changes []grant.Change
		if name == "everything" {
			changes = Sides(l, Grants(example(), ""), Grants(l, "")).Changes()
		}
		for _, width := range []int{60, 80, 140} {
			text := View{View: layout.View{Home: "/home/u", Width: width}}.Brief(l, changes) + Question + "\n"
			golden.Compare(t, fmt.Sprintf("testdata/brief-%s-%d.txt", name, width), []byte(text))
			if lines := strings.Count(text, "\n"); lines > briefLines {
				t.Errorf("%s at %d columns: %d lines", name, width, lines)
			}
			for line := range strings.Lines(text) {
				if got := layout.Width(strings.TrimSuffix(line, "\n")); got > width {
					t.Errorf("%s: a line of %d columns in %d: %s", name, got, width, line)
				}
			}
		}
	}
}

// Nobody is asked, and a commit would hold something else: that is told.
func TestWhatACommitDependsOnIsToldWithoutAQuestion(t *testing.T) {
	v := View{View: layout.View{Home: "/home/u", Width: 80}}
	if got := v.Warnings(fiveProfiles()["left"]); !strings.Contains(got, "claudebox: git refuses what needs filter.lfs.clean") ||
		strings.Contains(got, "hook") {
		t.Errorf("told is %q", got)
	}
}

// TestARedRemarkIsNeverLeftOut: what does not fit is counted at the question,
// and stands in full where nobody is asked.
func TestARedRemarkIsNeverLeftOut(t *testing.T) {
	v := View{View: layout.View{Home: "/home/u", Width: 80}}
	for count := range 12 {
		l := fiveProfiles()["everything"]
		l.Warnings = l.Warnings[:count]
		text := v.Brief(l, []grant.Change{{After: grant.One("network", "full")}})
		more := 0
		if _, tail, is := strings.Cut(text, "more in red"); is {
			fmt.Sscan(text[strings.LastIndexByte(text[:len(text)-len(tail)-len("more in red")], '\n'):], &more)
		}
		for i, w := range l.Warnings {
			if !strings.Contains(text, fmt.Sprintf("warning %d:", i)) && i < count-more {
				t.Errorf("of %d this one is not told:\n%s\n%s", count, w, text)
			}
			if !strings.Contains(v.Warnings(l), fmt.Sprintf("warning %d:", i)) {
				t.Errorf("not told without a question: %s", w)
			}
		}
	}
}

// R12: with `--yes`, a profile that mounts ~/.ssh started in silence.
func TestASecretThatCanBeReadInsideIsToldWithoutAQuestion(t *testing.T) {
	v := View{View: layout.View{Home: "/home/u", Width: 80, Colour: true}}
	if got := v.Warnings(example()); !strings.Contains(got, layout.Red+"claudebox: secrets that can be read inside: ") ||
		!strings.Contains(got, "~/.aws/credentials") {
		t.Errorf("got %q", got)
	}
	l := example()
	l.Env, l.Mounts, l.Warnings = nil, nil, nil
	if got := v.Warnings(l); got != "" {
		t.Errorf("of no secret: %q", got)
	}
}

// TestWhereAProfileSendsASecretIsSaidAtTheQuestion: a profile takes a secret from a file of the user's, sends one to a
// host of its own, or leads a usual one elsewhere.
func TestWhereAProfileSendsASecretIsSaidAtTheQuestion(t *testing.T) {
	l := fiveProfiles()["default"]
	for _, name := range []string{"your Claude login", "GH_TOKEN", "GITHUB_TOKEN", "ANTHROPIC_AUTH_TOKEN"} {
		l.Outside = append(l.Outside, launch.Outside{Name: name, Hosts: []string{"api.github.com", "github.com"}})
	}
	v := View{View: layout.View{Home: "/home/u", Width: 80}}
	if text := v.Brief(l, nil); !strings.Contains(text, "by placeholders: your Claude login, GH_TOKEN,\n") {
		t.Errorf("usual ones:\n%s", text)
	}
	l.Plan.Secrets = []plan.Secret{{Variable: "CI_ID", File: "~/.vault-token"}}
	l.Outside = append(l.Outside,
		launch.Outside{Name: "CI_ID", Hosts: []string{"collect.evil.example"}},
		launch.Outside{Name: "ANTHROPIC_API_KEY", Hosts: []string{"gate.evil.example"}})
	for _, width := range []int{80, 140} {
		v.Width = width
		text := strings.Join(strings.Fields(v.Brief(l, nil)), " ")
		for _, want := range []string{"CI_ID from ~/.vault-token for collect.evil.example", "ANTHROPIC_API_KEY for gate.evil.example"} {
			if !strings.Contains(text, want) {
				t.Errorf("%d columns: %s is not in\n%s", width, want, text)
			}
		}
	}
}

func TestNothingHostileReachesTheTerminalAtTheQuestion(t *testing.T) {
	const bad = "\x1b[2J\a\u202e"
	l := fiveProfiles()["everything"]
	l.Project += bad
	l.Agent.Words[0] += bad
	l.Warnings, l.Plan.Network.Allow = []string{bad}, []string{bad}
	l.Mounts = append(l.Mounts, launch.Mount{Kind: plan.ROData, Destination: l.Project + "/a" + bad, Why: launch.WhyHidden})
	v := View{View: layout.View{Home: "/home/u", Width: 140}}
	for _, text := range []string{v.Brief(l, []grant.Change{{After: grant.One("network", bad)}}), v.Line(l), v.Warnings(l)} {
		if strings.ContainsAny(text, bad[:1]+"\a") {
			t.Errorf("%q", text)
		}
		if strings.Contains(text, "api03") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
}

// A host of the user's own network widens what is reached, and a proxy decides
// where names lead: both are told, red the first, and ask anew when they come.
func TestAHostOfTheOwnNetworkAndAProxyAreTold(t *testing.T) {
	l := fiveProfiles()["everything"]
	l.Tier = "allow"
	l.Plan.Network = plan.Network{Tier: "allow", Allow: []string{"gitlab.corp"}}
	before := l
	v := View{View: layout.View{Home: "/home/u", Width: 140, Colour: true}}
	if strings.Contains(v.Brief(l, nil), layout.Red+"allow") {
		t.Error("a list of public hosts is red")
	}
	l.Plan.Network.Private, l.Plan.Network.Via = []string{"gitlab.corp"}, "http://proxy.corp:3128"
	if changes := difference(before, l); len(changes) != 2 || !strings.Contains(strings.Join(changes, "\n"), "network host gitlab.corp (may be in your own network)") {
		t.Errorf("changed: %q", changes)
	}
	for name, text := range map[string]string{"question": v.Brief(l, nil), "audit": v.Text(l)} {
		for _, want := range []string{"gitlab.corp (may be in your own network)", "by the proxy http://proxy.corp:3128", layout.Red + "allow: "} {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				t.Errorf("the %s does not say %q:\n%s", name, want, text)
			}
		}
	}
	l.Plan.Network = plan.Network{Tier: "inet", Except: []string{"10.0.0.1"}}
	if l.Tier = "inet"; !slices.Contains(Grants(l, ""), grant.Grant{Key: "network.except", Name: "10.0.0.1"}) {
		t.Errorf("an exception is not approved: %q", Grants(l, ""))
	}
}

// The question has a line of the project's dev shell, and none where there probably is none.
func TestTheQuestionNamesTheDevShell(t *testing.T) {
	v := View{View: layout.View{Home: "/home/u", Width: 80}}
	for shown, want := range map[string]bool{".#default: 14 programs, 9 variables": true, "": false} {
		l := example()
		l.Devshell = &launch.Devshell{Shown: shown}
		for _, text := range []string{v.Brief(l, nil), v.Text(l)} {
			if strings.Contains(text, "dev shell ") != want || !strings.Contains(text, shown) {
				t.Errorf("%q:\n%s", shown, text)
			}
		}
	}
}

// A folder that a profile shows read-only was told by d alone, beside "the rest of your home" among what is hidden.
func TestTheQuestionNamesWhatIsReadBesidesTheProject(t *testing.T) {
	l := fiveProfiles()["default"]
	show := func(at, why string, secret bool) {
		l.Mounts = append(l.Mounts, launch.Mount{Kind: plan.ROBind, Source: at, Destination: at, Why: why, Secret: secret})
	}
	show("/home/u/datasets", "profile work:8", false)
	show("/srv/models", "--mount-ro", false)
	show("/home/u/.aws/credentials", "profile work:9", true) // it has a line of its own
	show("/home/u/src/shop/deploy", "profile work:10", false)
	show("/opt/claude", "agent", false)
	text := View{View: layout.View{Home: "/home/u", Width: 80}}.Brief(l, nil)
	if want := "\n  may read  ~/datasets, /srv/models\n"; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
}

// A launch that evaluates the dev shell alone asked about "true in a sandbox", the program that ends it.
func TestTheQuestionOfARefreshNamesTheDevShell(t *testing.T) {
	l := example()
	l.Agent.Words, l.Devshell = []string{"true"}, &launch.Devshell{Shown: ".#default", Only: true}
	text := View{View: layout.View{Width: 80}}.Brief(l, nil)
	if line, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(line, "claudebox: the project's dev shell is evaluated in a sandbox") {
		t.Error(line)
	}
}

// An agent that is a script was called after what runs it: "bash-5.2.37 in a sandbox".
func TestTheQuestionNamesTheAgentAndNotWhatRunsItsScript(t *testing.T) {
	command := []string{"/home/u/bin/my-claude", "--fast"}
	for _, tc := range []struct {
		word    string
		command []string // of the profile
		want    string
	}{
		{store + "bash-5.2.37/bin/bash", nil, "claude"},
		{store + "nodejs-22.21.1/bin/node", nil, "claude"},
		{"/home/u/.local/share/claude/versions/2.1.329", nil, "claude"},
		{store + "claude-code-2.1.329/bin/claude", nil, "claude-code-2.1.329"},
		{store + "bash-5.2.37/bin/bash", command, "my-claude"},
	} {
		l := example()
		l.Plan.Agent = plan.Agent{Name: "claude", Command: tc.command}
		l.Agent = launch.Agent{Words: []string{tc.word}, OwnsTerminal: true}
		line, _, _ := strings.Cut(View{View: layout.View{Width: 80}}.Brief(l, nil), "\n")
		if !strings.HasPrefix(line, "claudebox: "+tc.want+" in a sandbox") {
			t.Errorf("%s: %s", tc.word, line)
		}
	}
}

// D20: "remarks 9, which d shows" stood there with 13 lines free.
func TestARemarkIsToldWhileLinesAreFree(t *testing.T) {
	l := fiveProfiles()["default"]
	l.Notes = []string{"git commits nothing inside", "the second"}
	v := View{View: layout.View{Home: "/home/u", Width: 80}}
	if got := v.Brief(l, nil); !strings.Contains(got, "  remarks   git commits nothing inside\n            the second\n") {
		t.Errorf("%s", got)
	}
	for range 30 {
		l.Notes = append(l.Notes, "one more")
	}
	got := v.Brief(l, nil)
	if lines := strings.Count(got+Question+"\n", "\n"); lines != briefLines || !strings.Contains(got, "            24, which d shows\n") {
		t.Errorf("%d lines:\n%s", lines, got)
	}
}

// Nobody is asked about a second branch, and what is not there is said all the same.
func TestTheLineOfABranchSaysWhatIsNotThere(t *testing.T) {
	v, l := View{View: layout.View{Width: 140}}, example()
	l.Branch, l.Undone, l.Project = "feat", 2, "/home/u/"+strings.Repeat("deep/", 20)
	if got := v.Line(l); !strings.Contains(got, "network "+l.Tier+", ") || !strings.Contains(got, ", branch feat, without your uncommitted work (2)") {
		t.Error(got)
	}
}
