package audit

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/golden"
	"claudebox/internal/diag/layout"
	"claudebox/internal/plan"
	"claudebox/internal/plan/diff"
	"claudebox/internal/profile/grant"
	"claudebox/internal/sandbox/launch"
)

const store = "/nix/store/0123456789abcdfghijklmnpqrsvwxyz-"

func example() launch.Launch {
	variable := func(name string, from plan.EnvFrom, value, why string, secret bool) launch.Variable {
		return launch.Variable{Env: plan.Env{Name: name, From: from, Why: why, Secret: secret}, Value: value}
	}
	return launch.Launch{
		Plan: plan.Plan{
			Profile: "work", State: "project",
			Network: plan.Network{Tier: "full"}, Nix: plan.Nix{Store: "full"},
			Pins: plan.Pins{
				Nixpkgs: plan.Nixpkgs{Rev: "391b592eb448", Path: store + "source"},
				Packages: []plan.Package{
					{Attr: "awscli2", Version: "2.15.0", Outputs: []plan.Output{{Name: "out", Path: store + "awscli2-2.15.0"}}, Why: "profile work:3"},
					{Attr: "git", Version: "2.50.0", Outputs: []plan.Output{{Name: "out", Path: store + "git-2.50.0"}}, Why: "base"},
				},
			},
		},
		Tier:    "full",
		Outside: []launch.Outside{{Name: "GH_TOKEN", Hosts: []string{"api.github.com", "github.com"}, Why: "profile work:9"}},
		Setting: launch.Setting{
			Project: "/home/u/src/a project", State: "/home/u/.claudebox/instances/00ff",
			Agent:   launch.Agent{Words: []string{store + "claude-code-2.1.0/bin/claude", "--dangerously-skip-permissions"}},
			Request: []string{"-p", "fix\x1b[2J it"},
		},
		Env: []launch.Variable{
			variable("ANTHROPIC_API_KEY", plan.FromHost, "sk-ant-api03-0123456789", "base", true),
			variable("AVERYLONGNAMEOFAVARIABLETHATNOBODYWANTS", plan.FromHost, "short", "CLAUDEBOX_EXTRA_ENV", true),
			variable("AWS_PROFILE", plan.FromConst, "work", "profile work:5", false),
			variable("HOME", plan.FromMade, "/home/u", "base", false),
			variable("PATH", plan.FromMade, store+"git-2.50.0/bin:"+store+"jq/bin", "base", false),
		},
		Mounts: []launch.Mount{
			{Kind: plan.Tmpfs, Destination: "/", Why: "base"},
			{Kind: plan.Bind, Source: "/home/u/.claudebox/instances/00ff/.claude", Destination: "/home/u/.claude", Why: "base"},
			{Kind: plan.ROBind, Source: "/home/u/.aws/credentials", Destination: "/home/u/.aws/credentials", Secret: true, Why: "profile work:7"},
			{Kind: plan.Bind, Source: "/srv/data", Destination: "/data", Why: "--mount-rw"},
			{Kind: plan.ROBind, Source: plan.DaemonSocketDir, Destination: plan.DaemonSocketDir, Why: "nix daemon"},
		},
		Warnings: []string{"the host executes what is written here"},
		Notes:    []string{"EDITOR (vim) does not enter: that program is not inside, so git is told to use none of it at all"},
	}
}

func TestTextReadsWellAt80Columns(t *testing.T) {
	v := View{View: layout.View{Home: "/home/u", Width: 80}}
	compare(t, "testdata/audit.txt", v.Text(example()))
	compare(t, "testdata/plan.txt", v.Plan(example()))
	compare(t, "testdata/whole.txt", v.Whole(example()))
	v.Sizes = Sizes{Paths: 31, Total: 512 << 20, Of: map[string]uint64{store + "awscli2-2.15.0": 300 << 20, store + "git-2.50.0": 900 << 10}}
	compare(t, "testdata/sizes.txt", v.Plan(example()))
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	golden.Compare(t, file, []byte(got))
	for _, line := range strings.Split(got, "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%s: longer than 80 columns: %s", file, line)
		}
	}
}

func TestADifferenceReadsWellAt80Columns(t *testing.T) {
	d := diff.Diff{
		{Name: "packages", Changes: []diff.Change{
			{Kind: diff.Added, Name: "kubectl", After: "1.30.1"},
			{Kind: diff.Changed, Name: "git", Before: "2.47.3", After: "2.50.1"},
			{Kind: diff.Changed, Name: "jq", Before: "1.7.1", After: "1.7.1", Note: "another build of it"},
			{Kind: diff.Removed, Name: "awscli2", Before: "2.15.0"},
		}},
		{Name: "variables", Changes: []diff.Change{
			{Kind: diff.Changed, Name: "GREETING", Before: strings.Repeat("long ", 20), After: "a\x1b[2Jb"},
		}},
		{Name: "mounts", Changes: []diff.Change{
			{Kind: diff.Changed, Name: "/data", Before: "ro ← ~/data", After: "rw ← ~/data", Wider: true},
			{Kind: diff.Added, Name: "~/.config/" + strings.Repeat("deep/", 20) + "file", After: "ro, secret", Wider: true},
		}},
		{Name: "network", Changes: []diff.Change{{Kind: diff.Changed, Name: "tier", Before: "full", After: "none"}}},
	}
	for range 60 {
		d[1].Changes = append(d[1].Changes, d[1].Changes[0])
	}
	text := View{View: layout.View{Home: "/home/u", Width: 80}}.Diff(d, "/home/u/old.json", "profile work")
	d[1].Changes = d[1].Changes[:1]
	compare(t, "testdata/difference.txt", View{View: layout.View{Home: "/home/u", Width: 80}}.Diff(d, "/home/u/old.json", "profile work"))
	for _, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > 80 || strings.Contains(line, "\x1b") {
			t.Errorf("%q", line)
		}
	}
	if got, want := (View{}).Diff(nil, "a.json", "b.json"), "claudebox: no change from a.json to b.json\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSecretsAndControlCharactersAreNotPrinted(t *testing.T) {
	for _, text := range []string{View{View: layout.View{Width: 80}}.Text(example()), View{View: layout.View{Width: 80}}.Plan(example()), View{View: layout.View{Width: 80}}.Whole(example())} {
		if strings.Contains(text, "api03") {
			t.Errorf("the key is shown:\n%s", text)
		}
		if strings.Contains(text, "\x1b") {
			t.Errorf("an escape sequence of the agent's words reaches the terminal:\n%q", text)
		}
	}
}

func TestColourIsOnlyPaint(t *testing.T) {
	plain := View{View: layout.View{Home: "/home/u", Width: 80}}.Text(example())
	if brief := (View{View: layout.View{Home: "/home/u", Width: 80, Colour: true}}).Brief(example(), nil); !strings.Contains(brief, layout.Red+"can be read inside") {
		t.Errorf("what can be read inside is not red:\n%q", brief)
	}
	coloured := View{View: layout.View{Home: "/home/u", Width: 80, Colour: true}}.Text(example())
	for _, code := range []string{layout.Bold, layout.Dim, layout.Red, layout.Plain} {
		coloured = strings.ReplaceAll(coloured, code, "")
	}
	if diff := cmp.Diff(plain, coloured); diff != "" {
		t.Errorf("-plain +coloured\n%s", diff)
	}
}

// difference is what changed from one launch to another, for people.
func difference(before, after launch.Launch) []string {
	return View{}.told(Sides(after, Grants(before, ""), Grants(after, "")).Changes())
}

func TestDifferenceNamesWhatIsNewAndWhatIsGone(t *testing.T) {
	l := example()
	l.Tier = "none"
	l.Mounts = l.Mounts[:3]
	want := []string{
		"+ network none",
		"- network full",
		"- rw /data ← /srv/data",
		"- ro " + plan.DaemonSocketDir,
	}
	got := difference(example(), l)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := difference(l, l); len(diff) != 0 {
		t.Errorf("equal launches differ in %q", diff)
	}
}

func TestANewValueIsNoWiderSandbox(t *testing.T) {
	l := example()
	l.Env[0].Value = "sk-ant-another"
	l.Request = []string{"another", "prompt"}
	if diff := difference(example(), l); len(diff) != 0 {
		t.Errorf("differs in %q", diff)
	}
}

func TestAWeakerProtectionIsAChange(t *testing.T) {
	for name, weaken := range map[string]func(*plan.Plan){
		"git's configuration is writable": func(p *plan.Plan) { p.Git.Config = "writable" },
		"nothing is protected":            func(p *plan.Plan) { p.Protect.Mode = "off" },
		"a glob is gone":                  func(p *plan.Plan) { p.Protect.Globs = []string{"other"} },
		"the state is another":            func(p *plan.Plan) { p.State = "shared" },
	} {
		l := example()
		weaken(&l.Plan)
		if len(difference(example(), l)) == 0 {
			t.Errorf("%s, and the user is not asked", name)
		}
	}
}

func TestTheNetworkIsToldInWords(t *testing.T) {
	for name, tc := range map[string]struct {
		network plan.Network
		want    []string
		lines   []string
	}{
		"allow": {
			plan.Network{Tier: "allow", Allow: []string{"*.b.example:443", "a.example"}, In: []int{3000}, Out: []int{5432}},
			[]string{
				"network   allow: these hosts only, by their names: *.b.example:443, a.example",
				"this host reaches inside, on 127.0.0.1 and [::1]: 3000", "the agent reaches services of this host, on 127.0.0.1: 5432",
			},
			[]string{"network allow", "network host a.example", "port 3000 of this host leads inside", "port 5432 inside leads to this host"},
		},
		"full, where ports are the host's": {
			plan.Network{Tier: "full", In: []int{3000}}, []string{"network   full: "}, []string{"network full"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := example()
			l.Tier, l.Plan.Network = tc.network.Tier, tc.network
			text := View{View: layout.View{Home: "/home/u", Width: 100}}.Text(l)
			expect.Contains(t, text, tc.want...)
			lines := each(Grants(l, ""), line)
			for _, want := range tc.lines {
				if !slices.Contains(lines, want) {
					t.Errorf("%q is no line of what is approved", want)
				}
			}
			if tc.network.Tier == "full" && strings.Contains(text+strings.Join(lines, "\n"), "3000") {
				t.Error("a port that needs no carrying is told of")
			}
		})
	}
}

// What the agent can do with Nix is said in plain words.
func TestTheLineForNix(t *testing.T) {
	store := launch.Mount{Kind: plan.ROBind, Source: "/nix/store", Destination: "/nix/store", Why: "base"}
	own := store
	own.Upper = "/home/u/.claudebox/instances/00ff/nix/main"
	daemon := launch.Mount{Kind: plan.ROBind, Source: plan.DaemonSocketDir, Destination: plan.DaemonSocketDir}
	for want, mounts := range map[string][]launch.Mount{
		"builds and fetches into a store of its own, and cannot change the host's": {own},
		"can neither build nor fetch":               {store},
		"collect garbage and see everybody's roots": {store, daemon},
	} {
		got := strings.Join(strings.Fields(View{View: layout.View{Width: 80}}.Text(launch.Launch{Mounts: mounts})), " ")
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
}

// What takes away is not asked about, nor what can be reached in the same way already; all else is.
func TestOnlyWhatIsGrantedIsAskedAbout(t *testing.T) {
	const p, empty = "/home/u/p", "/home/u/.claudebox/empty"
	at := func(kind plan.MountKind, source, why string) launch.Mount {
		return launch.Mount{Kind: kind, Source: source, Destination: source, Why: why}
	}
	git, hooks := at(plan.Bind, p+"/.git", "git"), at(plan.ROBind, p+"/.git/hooks", "git")
	hidden, lent := at(plan.ROData, p+"/.env", launch.WhyHidden), at(plan.ROBind, "/srv/lent", "profile work:3")
	folder := launch.Mount{Kind: plan.ROBind, Source: empty, Destination: p + "/keys", Why: launch.WhyHidden}
	base := []launch.Mount{at(plan.Bind, p, plan.Base), git, hooks, hidden, folder, lent}
	with := func(more ...launch.Mount) []launch.Mount { return append(slices.Clone(base), more...) }
	without := func(i int) []launch.Mount { return slices.Delete(slices.Clone(base), i, i+1) }
	inPlace := func(i int, m launch.Mount) []launch.Mount { return append(without(i), m) }
	moved := launch.Mount{Kind: plan.ROBind, Source: "/srv/other", Destination: p + "/sub", Why: "--mount-ro"}
	for name, tc := range map[string]struct {
		mounts []launch.Mount
		gone   string
		want   bool
	}{
		"the same":                              {base, "", false},
		"a cover":                               {with(at(plan.ROData, p+"/b/.env", launch.WhyHidden)), "", false},
		"read-only in the project":              {with(at(plan.ROBind, p+"/.envrc", "direnv")), "", false},
		"a worktree's folder in a writable one": {with(at(plan.Bind, p+"/.git/worktrees/b", "git")), "", false},
		"what was lent is gone":                 {without(5), "", false},
		"a cover's file is gone":                {without(3), p + "/.env", false},
		"a cover is gone":                       {without(3), "", true},
		"a hidden folder is shown":              {without(4), "", true},
		"hooks are writable":                    {without(2), "", true},
		"writable in what is read-only":         {with(at(plan.Bind, p+"/.git/hooks/b", "profile work:4")), "", true},
		"what was hidden can be read":           {inPlace(3, at(plan.ROBind, p+"/.env", "profile work:4")), "", true},
		"what was lent can be written":          {inPlace(5, at(plan.Bind, "/srv/lent", "profile work:3")), "", true},
		"what was lent can be written below":    {with(at(plan.Bind, "/srv/lent/x", "profile work:4")), "", true},
		"another folder of the host":            {with(at(plan.ROBind, "/srv/new", "--mount-ro")), "", true},
		"another folder in the project's place": {with(moved), "", true},
		"a path with the word between":          {with(at(plan.ROBind, p+"/a at b", "git")), "", false},
		"paths that cannot be told apart": {with(launch.Mount{
			Kind: plan.ROBind, Source: p + "/a at " + p + "/b", Destination: p + "/c", Why: "git",
		}), "", true},
	} {
		before, after := example(), example()
		before.Mounts, after.Mounts = base, tc.mounts
		sides := Sides(after, Grants(before, ""), Grants(after, ""))
		if got := !sides.Within(func(path string) bool { return path == tc.gone }); got != tc.want {
			t.Errorf("%s: asked: %v\n%q", name, got, View{}.told(sides.Changes()))
		}
	}
	for change, want := range map[string]bool{
		"+ variable NEW from host": true, "+ package jq": true, "- package jq": false, "- network host a.example": false,
		"- secret X is used for a.example": true, "+ plan 00ff": true, "- protection on": true, "- x": true, "+ x": true,
	} {
		var approved, now grant.Set
		if line := change[2:]; change[0] == '+' {
			now = ofLine(line)
		} else {
			approved = ofLine(line)
		}
		if got := !Sides(example(), approved, now).Within(func(string) bool { return false }); got != want {
			t.Errorf("%s: asked: %v", change, got)
		}
	}
}

// A repository that the user makes in the project lets in nothing: nobody is asked, and who is asked for another reason
// does not read of its mounts. One whose objects lie elsewhere shows what was not there.
func TestARepositoryInTheProjectIsNoChange(t *testing.T) {
	p := example().Project
	for objects, asked := range map[string]bool{p + "/sub/.git/objects": false, "/home/u/other/.git/objects": true} {
		before, after := example(), example()
		before.Mounts = append(before.Mounts, launch.Mount{Kind: plan.Bind, Source: p, Destination: p, Why: plan.Base})
		after.Mounts = append(slices.Clone(before.Mounts),
			launch.Mount{Kind: plan.Bind, Source: p + "/sub", Destination: p + "/sub", Why: "it is kept in its place"},
			launch.Mount{Kind: plan.Bind, Source: "/state/git/inner", Destination: p + "/sub/.git", Why: launch.WhyOwnGit},
			launch.Mount{Kind: plan.ROBind, Source: objects, Destination: "/run/claudebox/git/x/objects", Why: launch.WhyObjects})
		sides := Sides(after, Grants(before, ""), Grants(after, ""))
		if got := !sides.Within(func(string) bool { return false }); got != asked {
			t.Errorf("%s: asked: %v", objects, got)
		}
		if got := (View{}).told(sides.Changes()); len(got) > 1 || asked != (len(got) == 1 && strings.Contains(got[0], "/other/")) {
			t.Errorf("%s: %q", objects, got)
		}
		if changes := Sides(after, Grants(after, ""), Grants(after, "")).Changes(); len(changes) > 0 {
			t.Errorf("the next time: %q", View{}.told(changes))
		}
	}
}

func TestAChangeIsShort(t *testing.T) {
	v := View{View: layout.View{Home: "/home/u", Width: 80}}
	for line, want := range map[string]string{
		"mount rw /home/u/p/.git/worktrees/b at /home/u/p/.git/worktrees/b": "rw ~/p/.git/worktrees/b",
		"mount ro /srv/x at /home/u/x":                                      "ro ~/x ← /srv/x",
		"mount hidden /home/u/.claudebox/empty at /home/u/p/k":              "hidden ~/p/k",
		"mount ro /a at b at /a at b":                                       "ro '/a at b'",
		"network full":                                                      "network full",
		"secret a\x1bb":                                                     `secret a\x1bb`,
	} {
		if got := v.grant(ofLine(line)[0]); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// `.env` stood in the question's row of what is hidden, and again in a remark.
func TestWhatIsHiddenIsNamedOnce(t *testing.T) {
	l := fiveProfiles()["secrets"]
	v := View{View: layout.View{Home: "/home/u", Width: 140}}
	if text := v.Brief(l, nil); strings.Count(text, ".env") != 1 || strings.Contains(text, "`show`") {
		t.Error(text)
	}
	if text := v.Text(l); !strings.Contains(text, "`show` in a profile opens what is hidden") {
		t.Error(text)
	}
}
