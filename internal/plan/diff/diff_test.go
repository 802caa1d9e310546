package diff

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"claudebox/internal/plan"
)

// store makes a store path whose hash is one digit, again and again.
func store(digit byte, name string) string {
	return "/nix/store/" + string(slices.Repeat([]byte{digit}, 32)) + "-" + name
}

func example() plan.Plan {
	jq, git, bash := store('1', "jq-1.7"), store('2', "git-2.50"), store('3', "bash-5.2")
	return plan.Plan{
		Version: plan.Version, Profile: "work", System: "x86_64-linux",
		Sources: []plan.Source{{Name: "work", SHA256: "00"}},
		Pins: plan.Pins{
			Nixpkgs: plan.Nixpkgs{Rev: "aaaa", Path: store('4', "source")},
			Packages: []plan.Package{
				{Attr: "jq", Version: "1.7", Why: "profile work:2", Outputs: []plan.Output{{Name: "out", Path: jq}}},
				{Attr: "git", Version: "2.50", Why: "base", Outputs: []plan.Output{{Name: "out", Path: git}}},
			},
			Tools: []plan.Tool{{Name: "bash", Path: bash + "/bin/bash"}},
		},
		Path: []string{jq + "/bin", git + "/bin"},
		Env: []plan.Env{
			{Name: "AWS_PROFILE", From: plan.FromConst, Value: "work", Why: "profile work:3"},
			{Name: "NIX_PATH", From: plan.FromMade, Value: "nixpkgs=" + store('4', "source"), Why: "base"},
			{Name: "PATH", From: plan.FromMade, Value: jq + "/bin:" + git + "/bin", Why: "base"},
			{Name: "SHELL", From: plan.FromMade, Value: bash + "/bin/bash", Why: "base"},
		},
		Mounts: []plan.Mount{
			{Kind: plan.Symlink, Source: bash + "/bin/bash", Destination: "/bin/sh", Why: "base"},
			{Kind: plan.ROBind, Source: "${home}/data", Destination: "/data", Why: "profile work:5"},
			{Kind: plan.Tmpfs, Destination: "/tmp", Mode: "1777", Size: 1 << 30, Why: "base"},
		},
		Network: plan.Network{Tier: "allow", Allow: []string{"api.anthropic.com"}},
		State:   "project", Cache: "project", Project: "cwd",
		Nix:  plan.Nix{Daemon: "own", Store: "full"},
		Git:  plan.Git{Config: "readonly", Hosts: []plan.GitHost{{Host: "github.com", Variable: "GH_TOKEN"}}},
		Hide: []string{".env"}, Show: []string{".env.test"},
		Protect: plan.Protect{Mode: "default", Globs: []string{".envrc"}},
		Agent:   plan.Agent{Name: "claude", Args: []string{"--dangerously-skip-permissions"}},
		Compat:  "nix-ld", Confirm: "always",
	}
}

func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*plan.Plan)
		want Diff
	}{
		"equal plans": {func(*plan.Plan) {}, nil},
		"another version of a package, and nothing that follows from it": {
			func(p *plan.Plan) {
				path := store('5', "jq-1.8")
				p.Pins.Packages[0].Version, p.Pins.Packages[0].Outputs = "1.8", []plan.Output{{Name: "out", Path: path}}
				p.Path[0], p.Env[2].Value = path+"/bin", path+"/bin:"+p.Path[1]
			},
			Diff{{"packages", []Change{{Changed, "jq", "1.7", "1.8", "", false}}}},
		},
		"the same version, built otherwise": {
			func(p *plan.Plan) {
				p.Pins.Packages[0].Outputs = []plan.Output{{Name: "out", Path: store('5', "jq-1.7")}}
			},
			Diff{{"packages", []Change{{Changed, "jq", "1.7", "1.7", "another build of it", false}}}},
		},
		"another output": {
			func(p *plan.Plan) {
				p.Pins.Packages[0].Outputs = append(p.Pins.Packages[0].Outputs, plan.Output{Name: "dev", Path: store('5', "jq-1.7-dev")})
			},
			Diff{{"packages", []Change{{Changed, "jq", "1.7", "1.7^out,dev", "", false}}}},
		},
		"a package more, and one less": {
			func(p *plan.Plan) {
				p.Pins.Packages = append(p.Pins.Packages[1:], plan.Package{Attr: "fd", Version: "10", Outputs: []plan.Output{{Name: "out", Path: store('5', "fd")}}})
			},
			Diff{{"packages", []Change{{Added, "fd", "", "10", "", false}, {Removed, "jq", "1.7", "", "", false}}}},
		},
		"another order on PATH": {
			func(p *plan.Plan) { slices.Reverse(p.Pins.Packages) },
			Diff{{"packages", []Change{{Changed, "order on PATH", "", "", "another program may come first", false}}}},
		},
		"another nixpkgs, and nothing that follows from it": {
			func(p *plan.Plan) {
				p.Pins.Nixpkgs = plan.Nixpkgs{Rev: "bbbb", Path: store('5', "source")}
				p.Env[1].Value = "nixpkgs=" + store('5', "source")
			},
			Diff{{"nixpkgs", []Change{{Changed, "nixpkgs", "aaaa", "bbbb", "", false}}}},
		},
		"another tool, and nothing that follows from it": {
			func(p *plan.Plan) {
				path := store('5', "bash-5.3") + "/bin/bash"
				p.Pins.Tools[0].Path, p.Env[3].Value, p.Mounts[0].Source = path, path, path
			},
			Diff{{"tools", []Change{{Changed, "bash", "bash-5.2", "bash-5.3", "", false}}}},
		},
		"a secret that is used at one host more": {
			func(p *plan.Plan) {
				p.Secrets = []plan.Secret{{Variable: "T", Hosts: []string{"a.example", "b.example"}, As: []string{"bearer"}}}
			},
			Diff{{"settings", []Change{
				{Added, "secrets T for a.example", "", "", "", true}, {Added, "secrets T for b.example", "", "", "", true},
			}}},
		},
		"an MCP server, and folders beside the project": {
			func(p *plan.Plan) { p.MCP, p.Worktrees = []string{"files"}, []string{"../*"} },
			Diff{{"settings", []Change{
				{Added, "mcp.import files", "", "", "", true}, {Added, "worktrees ../*", "", "", "", true},
			}}},
		},
		"a constant with another value": {
			func(p *plan.Plan) { p.Env[0].Value = "home" },
			Diff{{"variables", []Change{{Changed, "AWS_PROFILE", "work", "home", "", false}}}},
		},
		"a variable that comes from the host now": {
			func(p *plan.Plan) {
				p.Env[0] = plan.Env{Name: "AWS_PROFILE", From: plan.FromHost, Secret: true}
			},
			Diff{{"variables", []Change{{Changed, "AWS_PROFILE", "work", "from the host, secret", "", true}}}},
		},
		"a link that leads elsewhere": {
			func(p *plan.Plan) { p.Mounts[0].Source = "/data/sh" },
			Diff{{"mounts", []Change{{Changed, "/bin/sh", "symlink ← <tool bash>", "symlink ← /data/sh", "", false}}}},
		},
		"a mount that may be written": {
			func(p *plan.Plan) { p.Mounts[1].Kind = plan.Bind },
			Diff{{"mounts", []Change{{Changed, "/data", "ro ← ~/data", "rw ← ~/data", "", true}}}},
		},
		"a mount of another folder": {
			func(p *plan.Plan) { p.Mounts[1].Source = "${home}/.ssh" },
			Diff{{"mounts", []Change{{Changed, "/data", "ro ← ~/data", "ro ← ~/.ssh", "", true}}}},
		},
		"a mount less": {
			func(p *plan.Plan) { p.Mounts = slices.Delete(p.Mounts, 1, 2) },
			Diff{{"mounts", []Change{{Removed, "/data", "ro ← ~/data", "", "", false}}}},
		},
		"a smaller tmpfs": {
			func(p *plan.Plan) { p.Mounts[2].Size = 1 },
			Diff{{"mounts", []Change{{Changed, "/tmp", "tmpfs, mode=1777, size=1073741824", "tmpfs, mode=1777, size=1", "", false}}}},
		},
		"store paths of a closure": {
			func(p *plan.Plan) {
				for _, digit := range []byte("56") {
					p.Pins.Closure = append(p.Pins.Closure, store(digit, "x"))
				}
			},
			Diff{{"mounts", []Change{{Changed, "closure", "0 paths", "2 paths", "2 new, 0 gone", false}}}},
		},
		"a wider tier and a host more": {
			func(p *plan.Plan) {
				p.Network = plan.Network{Tier: "inet", Allow: []string{"api.anthropic.com", "x.org"}}
			},
			Diff{{"network", []Change{{Changed, "tier", "allow", "inet", "", true}, {Added, "allow x.org", "", "", "", true}}}},
		},
		"a narrower tier": {
			func(p *plan.Plan) { p.Network = plan.Network{Tier: "none"} },
			Diff{{"network", []Change{{Changed, "tier", "allow", "none", "", false}, {Removed, "allow api.anthropic.com", "", "", "", false}}}},
		},
		"a protection less": {
			func(p *plan.Plan) { p.Hide, p.Protect.Globs = nil, nil },
			Diff{{"settings", []Change{{Removed, "hide .env", "", "", "", true}, {Removed, "protect .envrc", "", "", "", true}}}},
		},
		"words for the agent": {
			func(p *plan.Plan) { p.Agent.Args = append(p.Agent.Args, "-c") },
			Diff{{"settings", []Change{{Changed, "agent.args", "--dangerously-skip-permissions", "--dangerously-skip-permissions -c", "", false}}}},
		},
		"a profile that was edited": {
			func(p *plan.Plan) { p.Sources[0].SHA256 = "01" },
			Diff{{"profile", []Change{{Changed, "work", "", "", "its file has changed", false}}}},
		},
		"a rule that moved": {
			func(p *plan.Plan) { p.Env[0].Why = "profile work:9" },
			Diff{{"profile", []Change{{Changed, "order or lines", "", "", "what it asks for is the same", false}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := example()
			tc.edit(&after)
			if diff := cmp.Diff(tc.want, Of(example(), after)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestNoFieldOfAPlanChangesUnseen changes each value of a plan, those that
// later versions add among them, there and back.
func TestAProfileThatExtendsOneOfItsOwnNameIsEqualToItself(t *testing.T) {
	p := example()
	p.Sources = []plan.Source{{Name: "default", SHA256: "00"}, {Name: "default", SHA256: "01"}}
	if got := Of(p, p); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestNoFieldOfAPlanChangesUnseen(t *testing.T) {
	before := example()
	leaves(reflect.ValueOf(&before).Elem(), "", func(path string, _ reflect.Value) {
		if path == ".Version" {
			return
		}
		after := example()
		leaves(reflect.ValueOf(&after).Elem(), "", func(other string, leaf reflect.Value) {
			if other == path {
				spoil(leaf)
			}
		})
		there, back := Of(before, after), Of(after, before)
		if len(there) == 0 || len(back) == 0 {
			t.Errorf("%s changes, and nothing is said: %v %v", path, there, back)
		}
		if wider(there) && wider(back) && !oneOf(path, ".Mounts[1].Source") {
			t.Errorf("%s is wider there and back", path)
		}
	})
}

func wider(d Diff) bool {
	return slices.ContainsFunc(d, func(s Subject) bool {
		return slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Wider })
	})
}

// oneOf: another folder, another place, another host may each be wider.
func oneOf(path string, more ...string) bool {
	return slices.Contains(append(more, ".Mounts[1].Destination", ".Network.Allow[0]", ".Show[0]", ".Hide[0]", ".Protect.Globs[0]",
		".Git.Hosts[0].Host", ".Git.Hosts[0].Variable"), path)
}

func leaves(v reflect.Value, path string, each func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			leaves(v.Field(i), path+"."+v.Type().Field(i).Name, each)
		}
	case reflect.Slice:
		for i := range v.Len() {
			leaves(v.Index(i), path+"["+string(rune('0'+i))+"]", each)
		}
	default:
		each(path, v)
	}
}

func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(v.Int() + 1)
	}
}
