package grant_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/profile"
	"claudebox/internal/profile/grant"
)

// user is a folder of profiles in memory.
type user map[string]string

func (u user) Open(ref string, _ diag.Position) (name, file string, src []byte, err error) {
	text, found := u[ref]
	if !found {
		return "", "", nil, &profile.NotFoundError{Ref: ref}
	}
	return ref, ref + ".yaml", []byte(text), nil
}

var here = grant.Place{Home: "/home/u", Project: "/home/u/src/p"}

// narrow lays a project's profile over one of the user's.
func narrow(t *testing.T, base, project string) (profile.Profile, []string) {
	t.Helper()
	was, asked, _, err := profile.LoadOver("base", ".claudebox.yaml", []byte(project), user{"base": base})
	must.Do(t, err)
	made, widenings := grant.Narrow(was, asked, here)
	if _, again := grant.Narrow(was, made, here); len(again) > 0 {
		t.Errorf("what was made of it widens: %v", again)
	}
	return made, texts(widenings)
}

func texts(list []grant.Change) []string {
	var all []string
	for _, w := range list {
		all = append(all, strings.TrimSpace(w.String()+" "+w.After.Why))
	}
	return all
}

func TestWhatAProjectAsksForIsAWideningUnlessItIsCertainlyLess(t *testing.T) {
	for name, tc := range map[string]struct {
		base, project string
		widens        []string
	}{
		"nothing":                       {"network: inet", "{}", nil},
		"a smaller network":             {"network: full", "network: inet", nil},
		"no network":                    {"network: {tier: allow, allow: [a.example]}", "network: none", nil},
		"hosts instead of everything":   {"network: full", "network: {tier: allow, allow: [a.example]}", nil},
		"a wider network":               {"network: none", "network: full", []string{"network: full instead of none"}},
		"hosts instead of the internet": {"network: inet", "network: {tier: allow, allow: [a.example]}", nil},
		"the internet instead of hosts": {"network: {tier: allow, allow: [a.example]}", "network: inet", []string{"network: inet instead of allow"}},
		"one host more":                 {"network: {tier: allow, allow: [a.example]}", "network: {allow: [b.example]}", []string{"network: b.example"}},
		"one host of a preset":          {"network: {tier: allow, allow: [anthropic]}", "network: {allow: !replace [api.anthropic.com]}", nil},
		"fewer hosts":                   {"network: {tier: allow, allow: [a.example, b.example]}", "network: {allow: !replace [b.example]}", nil},
		"another agent":                 {"{}", "agent: {command: [/bin/codex, --yolo]}", []string{"agent: /bin/codex --yolo instead of claude"}},
		"another word for the agent":    {"agent: {command: [/bin/a, b c]}", "agent: {command: [/bin/a, b, c]}", []string{`agent: /bin/a b c instead of /bin/a "b c"`}},
		"the same agent":                {"agent: claude", "agent: claude", nil},
		"a package":                     {"packages: [jq]", "packages: [hello]", []string{"packages: hello .claudebox.yaml:1"}},
		"fewer packages":                {"packages: [a, b, c]", "packages: !replace [a, c]", nil},
		"packages in another order":     {"packages: [a, b]", "packages: !replace [b, a]", []string{"packages: another order on PATH"}},
		"other outputs":                 {"packages: [a]", "packages: !replace [a^dev]", []string{"packages: a^dev .claudebox.yaml:1"}},
		"another nixpkgs":               {"{}", "nixpkgs: /nix/store/0c5l1jz8k0cv6qzcz3v6k1pz0a2qd8h4-x", []string{"nixpkgs: /nix/store/0c5l1jz8k0cv6qzcz3v6k1pz0a2qd8h4-x instead of pinned"}},
		"a constant":                    {"{}", "env: {ANTHROPIC_BASE_URL: http://evil.example}", []string{"env: ANTHROPIC_BASE_URL=http://evil.example .claudebox.yaml:1"}},
		"a secret constant":             {"{}", "env: {MY_TOKEN: hunter2}", []string{"env: MY_TOKEN, which looks like a secret .claudebox.yaml:1"}},
		"a constant changed":            {"env: {A: 1}", "env: {A: 2}", []string{"env: A=2 .claudebox.yaml:1"}},
		"the same constant":             {"env: {A: 1}", "env: {A: 1}", nil},
		"a constant dropped":            {"env: {A: 1}", "env: !replace {B: 1}", []string{"env: B=1 .claudebox.yaml:1", "env: no longer A"}},
		"a variable of the host":        {"extra_env_passthrough: [A]", "extra_env_passthrough: [B]", []string{"extra_env_passthrough: B .claudebox.yaml:1"}},
		"fewer variables":               {"extra_env_passthrough: [A, B]", "extra_env_passthrough: !replace [A]", nil},
		"a mount":                       {"{}", "mounts:\n  - {host: ~/.ssh, secret: true}", []string{"mounts: ~/.ssh, read-only, secret (SSH keys) .claudebox.yaml:2"}},
		"a mount made writable":         {"mounts: [{host: ~/d}]", "mounts: !replace [{host: ~/d, mode: rw}]", []string{"mounts: ~/d, read-write instead of ~/d, read-only .claudebox.yaml:1"}},
		"a mount made read-only":        {"mounts: [{host: ~/d, mode: rw}]", "mounts: !replace [{host: ~/d}]", nil},
		"another source":                {"mounts: [{host: ~/d, sandbox: /d}]", "mounts: !replace [{host: ~/e, sandbox: /d}]", []string{"mounts: ~/e at /d, read-only instead of ~/d at /d, read-only .claudebox.yaml:1"}},
		"a mount dropped":               {"mounts: [{host: ~/d}]", "mounts: !replace []", nil},
		"a cover of the project lifted": {"mounts: [{host: /srv/empty, sandbox: ./keys}]", "mounts: !replace []", []string{"mounts: no longer /srv/empty at ./keys, read-only, which may cover something"}},
		"a cover by its absolute path":  {"mounts: [{host: /srv/empty, sandbox: ~/src/p/keys}]", "mounts: !replace []", []string{"mounts: no longer /srv/empty at ~/src/p/keys, read-only, which may cover something"}},
		"a cover of a mount lifted":     {"mounts: [{host: ~/d}, {host: /srv/empty, sandbox: ~/d/x}]", "mounts: !replace [{host: ~/d}]", []string{"mounts: no longer /srv/empty at ~/d/x, read-only, which may cover something"}},
		"a link in a folder that is given may lead anywhere": {"mounts: [{host: ~/d, mode: rw}]", "mounts: [{host: ~/d/x}]", []string{"mounts: ~/d/x, read-only .claudebox.yaml:1"}},
		"a link in the project may lead anywhere":            {"{}", "mounts: [{host: ./x}]", []string{"mounts: ./x, read-only .claudebox.yaml:1"}},
		"a home for one session":                             {"state: project", "state: ephemeral", nil},
		"the home of all":                                    {"state: project", "state: shared", []string{"state: shared instead of project"}},
		"one's own home instead":                             {"state: shared", "state: project", nil},
		"the user's home":                                    {"state: ephemeral", "state: host", []string{"state: host instead of ephemeral"}},
		"another dev shell":                                  {"{}", "devshell: {flake: '.#ci', hook: false, require: true}", nil},
		"a dev shell where there is none":                    {"devshell: off", "devshell: auto", []string{"devshell: auto instead of off"}},
		"variables of a dev shell":                           {"devshell: {vars: [A]}", "devshell: {file: shell.nix, vars: [A, ANTHROPIC_*]}", []string{"devshell: ANTHROPIC_*"}},
		"no dev shell":                                       {"{}", "devshell: off", nil},
		"less of Nix":                                        {"nix: {daemon: host}", "nix: {daemon: off, store: closure}", nil},
		"more of Nix":                                        {"nix: {daemon: off, store: closure}", "nix: {daemon: host, store: full}", []string{"nix.daemon: host instead of off", "nix.store: full instead of closure"}},
		"a login of git":                                     {"{}", "git: {hosts: {evil.example: GH_TOKEN}}", []string{"git.hosts: evil.example with GH_TOKEN .claudebox.yaml:1"}},
		"another token for a host":                           {"git: {hosts: {a.example: A}}", "git: {hosts: {a.example: B}}", []string{"git.hosts: a.example with B .claudebox.yaml:1", "git.hosts: no longer a.example with A"}},
		"a login of git dropped":                             {"git: {hosts: {a.example: A}}", "git: !replace {}", []string{"git.hosts: no longer a.example with A"}},
		"a secret used from outside":                         {"{}", "secrets: [{env: A, hosts: [a.example]}]", []string{"secrets: A for a.example as bearer basic .claudebox.yaml:1"}},
		"a secret no longer outside":                         {"secrets: [{env: A, hosts: [a.example]}]", "secrets: !replace []", []string{"secrets: no longer A for a.example as bearer basic"}},
		"git's configuration":                                {"{}", "git: {config: writable, ssh_to_https: true}", []string{"git.config: writable instead of readonly", "git.ssh_to_https: true instead of false"}},
		"hiding more":                                        {"hide: [a]", "hide: [b]", nil},
		"hiding less":                                        {"hide: [a]", "hide: !replace [b]", []string{"hide: no longer a"}},
		"showing":                                            {"{}", "show: [.env]", []string{"show: .env .claudebox.yaml:1"}},
		"showing less":                                       {"show: [a, b]", "show: !replace [a]", nil},
		"protecting more":                                    {"protect: [a]", "protect: [b]\nprotect_mode: strict", nil},
		"protecting less":                                    {"protect: [a]\nprotect_mode: strict", "protect: !replace []\nprotect_mode: default", []string{"protect: no longer a", "protect_mode: default instead of strict"}},
		"caches for one session":                             {"cache: project", "cache: ephemeral", nil},
		"caches kept":                                        {"cache: ephemeral", "cache: project", []string{"cache: project instead of ephemeral"}},
		"ports in tier full":                                 {"network: full", "network: inet\nports: {in: [3000], out: [5432]}", nil},
		"exceptions of inet":                                 {"network: {tier: inet, except: [10.0.0.1]}", "network: {tier: inet, except: [10.0.0.2]}", []string{"network.except: 10.0.0.2"}},
		"ports beyond inet":                                  {"network: inet\nports: {in: [1]}", "ports: {in: [3000], out: [5432]}", []string{"ports.in: 3000", "ports.out: 5432"}},
		"a server of the host":                               {"{}", "mcp: {import: [github]}", []string{"mcp.import: github"}},
		"fewer tools":                                        {"toolbox: full", "toolbox: base", nil},
		"more tools":                                         {"toolbox: base", "toolbox: full", []string{"toolbox: full instead of base"}},
		"no loader":                                          {"compat: nix-ld", "compat: off", nil},
		"the loader":                                         {"compat: off", "compat: nix-ld", []string{"compat: nix-ld instead of off"}},
		"the whole repository":                               {"project: cwd", "project: git-root", []string{"project: git-root instead of cwd"}},
		"folders beside the project":                         {"{}", "worktrees: [../wt-*]", []string{"worktrees: ../wt-* .claudebox.yaml:1"}},
		"a private host":                                     {"network: {tier: allow, allow: [a.b]}", "network: {allow: !replace [{host: a.b, private: true}]}", []string{"network.allow, private: a.b"}},
		"a private host over inet":                           {"network: inet", "network: {tier: allow, allow: [{host: a.b, private: true}]}", []string{"network.allow, private: a.b"}},
		"a private host over full":                           {"network: full", "network: {tier: allow, allow: [{host: a.b, private: true}]}", nil},
		"a private host no longer":                           {"network: {tier: allow, allow: [{host: a.b, private: true}]}", "network: {allow: !replace [a.b]}", nil},
		"a proxy of the project's":                           {"network: full", "network: {tier: allow, allow: [a.b], via: \"http://evil.org:80\"}", []string{"network.via: http://evil.org:80 instead of no proxy"}},
		"another proxy":                                      {"network: {tier: allow, allow: [a.b], via: \"http://p:1\"}", "network: {via: \"http://q:1\"}", []string{"network.via: http://q:1 instead of http://p:1"}},
		"asking more":                                        {"confirm: never", "confirm: always", nil},
		"asking less":                                        {"confirm: always", "confirm: never", []string{"confirm: never instead of always"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := narrow(t, tc.base, tc.project); !slices.Equal(got, tc.widens) {
				t.Errorf("widenings %q, want %q", got, tc.widens)
			}
		})
	}
}

func TestWhatIsLessCountsAlthoughTheRestDoesNot(t *testing.T) {
	made, widens := narrow(t,
		"name: mine\nnetwork: full\npackages: [a, b]\nmounts: [{host: ~/d, mode: rw}, {host: ~/e}]\nhide: [x]",
		"name: default\ndescription: the best\nnetwork: inet\npackages: !replace [b, evil]\nmounts: !replace [{host: ~/d}, {host: ~/.ssh}]\nhide: !replace [y]\nconfirm: never")
	if len(widens) != 4 {
		t.Errorf("widenings %q", widens)
	}
	if made.Name != "mine" || made.Description != "" || made.Confirm != "changed" || made.Network.Tier != profile.TierInet {
		t.Errorf("made %q, %q, confirm %s, network %s", made.Name, made.Description, made.Confirm, made.Network.Tier)
	}
	if len(made.Packages) != 1 || made.Packages[0].Attr != "b" || len(made.Mounts) != 1 || made.Mounts[0].Host != "~/d" || made.Mounts[0].Writable {
		t.Errorf("packages %v, mounts %v", made.Packages, made.Mounts)
	}
	if len(made.Hide) != 2 {
		t.Errorf("hidden is %v", made.Hide)
	}
}

func TestAListOfHostsThatIsLeftEmptyIsNoNetwork(t *testing.T) {
	made, _ := narrow(t, "network: {tier: allow, allow: [a.example]}", "network: {allow: !replace [b.example]}")
	if made.Network.Tier != profile.TierNone || len(made.Network.Allow) > 0 {
		t.Errorf("network %+v", made.Network)
	}
}

// settings are drawn from for profiles of all kinds.
var settings = [][]string{
	{"network: full", "network: inet", "network: none", "network: !replace {tier: allow, allow: [a.example, b.example]}", "network: !replace {tier: allow, allow: [b.example, c.example]}"},
	{"packages: [a, b]", "packages: !replace [b]", "packages: !replace [b, a]", "packages: [c]"},
	{"env: {A: 1, B: 2}", "env: !replace {A: 1}", "env: {A: 2}"},
	{"extra_env_passthrough: [X, Y]", "extra_env_passthrough: !replace [X]", "extra_env_passthrough: [Z]"},
	{"mounts: [{host: ~/d, mode: rw}, {host: /e, sandbox: ./k}]", "mounts: !replace [{host: ~/d}]", "mounts: !replace [{host: ~/d, secret: true}, {host: /e, sandbox: /f}]", "mounts: !replace []"},
	{"secrets: [{env: S, hosts: [a.example]}]", "secrets: !replace []", "secrets: [{env: R, hosts: [a.example]}]"},
	{"state: project", "state: shared", "state: ephemeral", "state: host"},
	{"nix: {daemon: host, store: full}", "nix: {daemon: off, store: closure}", "nix: {daemon: own}"},
	{"git: {hosts: {a.example: T}, ssh_to_https: true}", "git: {config: writable}", "git: !replace {}"},
	{"hide: [a, b]", "hide: !replace [b]", "hide: [c]"},
	{"show: [a, b]", "show: !replace [b]", "show: [c]"},
	{"protect: [a]", "protect: !replace []", "protect_mode: strict"},
	{"ports: {in: [1, 2]}", "ports: {in: !replace [2]}", "ports: {in: [3]}"},
	{"cache: ephemeral", "cache: project"},
	{"compat: off", "compat: nix-ld"},
	{"toolbox: base", "toolbox: full"},
	{"confirm: never", "confirm: changed", "confirm: always"},
	{"mcp: {import: [x]}", "mcp: {import: !replace [y]}"},
	{"worktrees: [../a-*]", "worktrees: !replace [../b-*]"},
	{"agent: claude", "agent: codex"},
	{"project: git-root", "project: cwd"},
}

// drawn is a profile that says about one in rare of them.
func drawn(r *rand.Rand, rare int) string {
	lines := []string{"description: drawn by lot"}
	for _, choices := range settings {
		if r.IntN(rare) == 0 {
			lines = append(lines, choices[r.IntN(len(choices))])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// Laws of Narrow, on profiles drawn by lot: what it makes asks for nothing
// more, and is made of itself; what asks for nothing more is taken whole.
func TestNarrowKeepsItsLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	judged, whole := 0, 0
	for range 2_000 {
		base, project := drawn(r, 2), drawn(r, 6)
		was, asked, _, err := profile.LoadOver("base", ".claudebox.yaml", []byte(project), user{"base": base})
		var faults diag.Problems
		if errors.As(err, &faults) {
			continue // the two do not fit each other
		} else if err != nil {
			t.Fatal(err)
		}
		made, widens := grant.Narrow(was, asked, here)
		if again, more := grant.Narrow(was, made, here); len(more) > 0 || !reflect.DeepEqual(again, made) {
			t.Fatalf("base:\n%s\nproject:\n%s\nmade %+v\nagain %+v\nwidenings %v", base, project, made, again, more)
		}
		if _, more := grant.Narrow(asked, made, here); len(widens) == 0 && len(more) > 0 {
			t.Fatalf("base:\n%s\nproject:\n%s\nwas not taken whole: %v", base, project, more)
		}
		judged++
		if len(widens) == 0 {
			whole++
		}
	}
	if judged < 1_000 || whole < 100 {
		t.Errorf("judged %d, %d of them whole: the lot is bad", judged, whole)
	}
}
