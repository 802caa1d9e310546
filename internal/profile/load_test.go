package profile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/profile"
)

// load reads a profile that must be right.
func load(t *testing.T, ref string, open files) profile.Profile {
	t.Helper()
	p, _, err := profile.Load(ref, open)
	if err != nil {
		t.Fatalf("Load(%q): %v", ref, err)
	}
	return p
}

// attrs are a profile's packages with where they were said.
func attrs(p profile.Profile) string {
	var list []string
	for _, pkg := range p.Packages {
		list = append(list, pkg.Attr+" "+pkg.Origin.String())
	}
	return strings.Join(list, ", ")
}

func TestExtendsAppendsListsAndReplacesWhatIsTagged(t *testing.T) {
	for name, tc := range map[string]struct {
		files files
		want  string
	}{
		"what is extended comes first": {
			files{"top.yaml": "extends: base\npackages: [b]", "base.yaml": "packages: [a]"},
			"a base:1, b top:2",
		},
		"a list of profiles, in its order": {
			files{"top.yaml": "extends: [x, y]\npackages: [c]", "x.yaml": "packages: [a]", "y.yaml": "packages: [b]"},
			"a x:1, b y:1, c top:2",
		},
		"!replace drops what was said before": {
			files{"top.yaml": "extends: base\npackages: !replace [b]", "base.yaml": "packages: [a]"},
			"b top:2",
		},
		"!replace with nothing empties the list": {
			files{"top.yaml": "extends: base\npackages: !replace []", "base.yaml": "packages: [a]"},
			"",
		},
		"!replace in the middle is replaced and appended to": {
			files{"top.yaml": "extends: mid\npackages: [c]", "mid.yaml": "extends: base\npackages: !replace [b]", "base.yaml": "packages: [a]"},
			"b mid:2, c top:2",
		},
		"a package of two profiles counts where it came first": {
			files{"top.yaml": "extends: base\npackages: [b, a, b]", "base.yaml": "packages: [a]"},
			"a base:1, b top:2",
		},
		"a profile that two others extend is applied once": {
			files{
				"top.yaml": "extends: [x, y]", "x.yaml": "extends: base\npackages: [b]",
				"y.yaml": "extends: base\npackages: [c]", "base.yaml": "packages: [a]",
			},
			"a base:1, b x:2, c y:2",
		},
		"a name in the file is the name in origins": {
			files{"top.yaml": "name: other\npackages: [a]"},
			"a other:2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := attrs(load(t, "top", tc.files)); got != tc.want {
				t.Errorf("packages %q, want %q", got, tc.want)
			}
		})
	}
}

func TestExtendsLetsTheLaterWin(t *testing.T) {
	p := load(t, "top", files{
		"top.yaml":   "extends: [one, two]\nnix: {store: closure}\nenv: {B: top, C: top}\ngit: {hosts: {b.org: B}}",
		"one.yaml":   "description: one\nstate: shared\ncache: ephemeral\nagent: {command: [codex], env: [KEY]}\nenv: {A: one, B: one}",
		"two.yaml":   "state: ephemeral\nagent: claude\nnix: {daemon: off, store: full}\nenv: {A: two}\ngit: {hosts: {a.org: A}, config: writable}",
		"three.yaml": "state: host",
	})
	var env []string
	for _, c := range p.Env {
		env = append(env, fmt.Sprintf("%s=%s %s", c.Name, c.Value, c.Origin))
	}
	for name, got := range map[string]string{
		"ephemeral":                           string(p.State),
		"ephemeral ":                          string(p.Cache) + " ",
		"off closure":                         string(p.Nix.Daemon) + " " + string(p.Nix.Store),
		"A=two two:4 B=top top:3 C=top top:3": strings.Join(env, " "),
		"claude [] []":                        fmt.Sprint(p.Agent.Name, " ", p.Agent.Command, " ", p.Agent.Env),
		"[{a.org A two:5} {b.org B top:4}] writable": fmt.Sprint(p.Git.Hosts, " ", p.Git.Config),
		"top, description not inherited: ":           p.Name + ", description not inherited: " + p.Description,
	} {
		if got != name {
			t.Errorf("got %q, want %q", got, name)
		}
	}
}

func TestAProfileThatTwoOthersExtendDoesNotUndoTheFirst(t *testing.T) {
	p := load(t, "top", files{
		"top.yaml": "extends: [x, y]", "x.yaml": "extends: base\nstate: shared", "y.yaml": "extends: base", "base.yaml": "state: ephemeral",
	})
	if p.State != profile.StateShared || len(p.Sources) != 4 {
		t.Errorf("state %s of %v", p.State, p.Sources)
	}
}

func TestANarrowerTierDropsAnInheritedAllowList(t *testing.T) {
	for name, tc := range map[string]struct{ top, want string }{
		"the list is inherited":    {"", "allow [a.org]"},
		"and appended to":          {"network: {allow: [b.org]}", "allow [a.org b.org]"},
		"or replaced":              {"network: {allow: !replace [b.org]}", "allow [b.org]"},
		"another tier has no list": {"network: inet", "inet []"},
		"the same tier keeps it":   {"network: allow", "allow [a.org]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := load(t, "top", files{"top.yaml": "extends: base\n" + tc.top, "base.yaml": "network: {tier: allow, allow: [a.org, A.org]}"})
			if got := fmt.Sprint(p.Network.Tier, " ", p.Network.Allow); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestHostsOfTierAllowAreNamesOrMappings(t *testing.T) {
	p := load(t, "top", files{"top.yaml": "network: {tier: allow, allow: [a.org, {host: Gitlab.corp, private: true}, {host: b.org}], via: \"http://p:1\"}"})
	if got, want := fmt.Sprint(p.Network), "{allow [a.org gitlab.corp b.org] [] [gitlab.corp] http://p:1 [] []}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWithHostsAddsToTheListAndChangesNothingElse(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"a list in one line":       {"network: {tier: allow, allow: [a.org, b.org]} # mine\n", "network: {tier: allow, allow: [c.org, \"*.d.org\", a.org, b.org]} # mine\n"},
		"an entry a line":          {"network:\n  tier: allow\n  allow:\n    # work\n    - a.org # x\n", "network:\n  tier: allow\n  allow:\n    # work\n    - c.org\n    - \"*.d.org\"\n    - a.org # x\n"},
		"JSON":                     {`{"network": {"tier": "allow", "allow": ["a.org"]}}`, `{"network": {"tier": "allow", "allow": ["c.org", "*.d.org", "a.org"]}}`},
		"mappings":                 {"network:\n  tier: allow\n  allow:\n  - host: a.org\n    private: true\n", "network:\n  tier: allow\n  allow:\n  - c.org\n  - \"*.d.org\"\n  - host: a.org\n    private: true\n"},
		"no list of its own":       {"extends: base\nnetwork: allow\n", ""},
		"a list by an alias":       {"env: {}\nnetwork: {tier: allow, allow: *a}\n", ""},
		"nothing":                  {"", ""},
		"letters of several bytes": {"network: {description: \"ü\", allow: [a.org]}", "network: {description: \"ü\", allow: [c.org, \"*.d.org\", a.org]}"},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := profile.WithHosts([]byte(tc.src), "allow", []string{"c.org", "*.d.org"})
			if string(got) != tc.want || found != (tc.want != "") {
				t.Errorf("got %q, %v; want %q", got, found, tc.want)
			}
		})
	}
}

func TestTheBuiltInDefaultStandsInAndCanBeReplaced(t *testing.T) {
	builtIn := load(t, "default", files{})
	if builtIn.Name != "default" || builtIn.Sources[0].File != profile.BuiltIn || builtIn.Confirm != "changed" {
		t.Errorf("built in: %+v", builtIn)
	}
	own := load(t, "default", files{"default.yaml": "extends: default\npackages: [a]"})
	var sources []string
	for _, s := range own.Sources {
		sources = append(sources, s.File)
	}
	if at := own.Packages[0].Origin; at.File != "default.yaml" || at.Line != 2 {
		t.Errorf("a package of one of two profiles of a name was said in %+v", at)
	}
	if want := []string{profile.BuiltIn, "default.yaml"}; !slices.Equal(sources, want) {
		t.Errorf("sources of an own default that extends the built-in one: %q, want %q", sources, want)
	}
	text, _, err := profile.Show("default", files{"default.yaml": "extends: default\nstate: shared"}, false)
	if err != nil || !strings.Contains(string(text), "state: shared # default:2\n") || !strings.Contains(string(text), "confirm: changed # built-in:") {
		t.Errorf("origins of the two cannot be told apart: %v\n%s", err, text)
	}
	if got := load(t, "top", files{"top.yaml": "extends: default", "default.yaml": "packages: [a]"}); attrs(got) != "a default:1" {
		t.Errorf("an own default is not taken: %q", attrs(got))
	}
}

func TestSourcesNameEveryFileWithItsHash(t *testing.T) {
	p := load(t, "top", files{"top.yaml": "extends: ./b.yaml\n", "./b.yaml": "name: base"})
	want := []profile.Source{ // sha256sum(1) of the two texts
		{Name: "base", File: "./b.yaml", SHA256: "1b68680688e63d8f83b9e5e6b59799627b0df895224c180dde6012d4bc9ddde8"},
		{Name: "top", File: "top.yaml", SHA256: "5dd02f2b6ba92ba2784d0482263fdc112cd1f9fc0af8c0ddd53743ca0b2397be"},
	}
	if !slices.Equal(p.Sources, want) {
		t.Errorf("got %v, want %v", p.Sources, want)
	}
}

func TestExtendsThatCannotBeFollowed(t *testing.T) {
	deep := files{}
	for i := range 20 {
		deep[fmt.Sprintf("p%d.yaml", i)] = fmt.Sprintf("extends: p%d", i+1)
	}
	wide := files{"top.yaml": "extends: ["}
	for i := range 200 {
		wide["top.yaml"] += fmt.Sprintf("w%d, ", i)
		wide[fmt.Sprintf("w%d.yaml", i)] = ""
	}
	wide["top.yaml"] = strings.TrimSuffix(wide["top.yaml"], ", ") + "]"
	for name, tc := range map[string]struct {
		ref   string
		files files
		want  string // the beginning of the report
	}{
		"a circle is shown": {
			"a",
			files{"a.yaml": "extends: b", "b.yaml": "packages: []\nextends: [c]", "c.yaml": "extends: b"},
			"c.yaml:1:10: extends: b.yaml extends itself: b.yaml → c.yaml → b.yaml -> remove one extends of the circle\n",
		},
		"a profile that extends itself": {
			"a",
			files{"a.yaml": "extends: a"},
			"a.yaml:1:10: extends: a.yaml extends itself: a.yaml → a.yaml -> remove one extends of the circle\n",
		},
		"a name that is not there": {
			"a",
			files{"a.yaml": "extends: [base, basf]", "base.yaml": ""},
			"a.yaml:1:17: extends: no profile \"basf\"; did you mean \"base\"?\n",
		},
		"too deep": {"p0", deep, "p15.yaml:1:10: extends: more than 16 profiles deep\n"},
		"too many": {"top", wide, "top.yaml:1:663: extends: more than 128 profiles\n"},
		"a reference that is no text": {
			"a",
			files{"a.yaml": "extends: [[b]]"},
			"a.yaml:1:11: extends: expected the name or file of a profile, found a list\n",
		},
		"all problems of all files, the outermost first": {
			"a",
			files{"a.yaml": "extends: [b, nothere]\nstate: x", "b.yaml": "x: 1\nextends: c", "c.yaml": "mounts: [{host: a}]"},
			"a.yaml:1:14: extends: no profile \"nothere\"\n" +
				"a.yaml:2:8: state: unknown word \"x\"; expected project, shared, ephemeral or host\n" +
				"b.yaml:1:1: unknown key \"x\" in profile; expected name, ",
		},
		"mounts of two files that conflict": {
			"a",
			files{"a.yaml": "extends: b\nmounts: [{host: /x, mode: rw}]", "b.yaml": "mounts: [{host: /x}]"},
			"a.yaml:2:10: mounts: /x is mounted differently in b:1 -> keep one of them, or tag the list with !replace\n",
		},
		"an allow list on top of another tier must not look like a restriction": {
			"a",
			files{"a.yaml": "extends: b\nnetwork: {allow: [a.org]}", "b.yaml": "extends: c\nnetwork: inet", "c.yaml": "network: {tier: allow, allow: [c.org]}"},
			"a.yaml:2:18: allow: a list of hosts is for tier allow, and the tier is inet -> write tier: allow, or remove the list\n",
		},
		"a variable that is constant here and passes there": {
			"a",
			files{"a.yaml": "extends: b\nenv: {X: 1}", "b.yaml": "extra_env_passthrough: [X]"},
			"b.yaml:1:25: X passes from the host, and is a constant in a:2 -> keep one of them\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := profile.Load(tc.ref, tc.files)
			if got := problemsOf(t, err); !strings.HasPrefix(got, tc.want) || got == "" {
				t.Errorf("got:\n%swant:\n%s", got, tc.want)
			}
		})
	}
}

// unreadable is an Opener that cannot read what it found.
type unreadable struct {
	err error
}

func (u unreadable) Open(ref string, _ diag.Position) (string, string, []byte, error) {
	if ref == "top" {
		return "top", "top.yaml", []byte("extends: default"), nil
	}
	return "", "", nil, u.err
}

func TestAFileThatCannotBeReadIsNeverPassedOver(t *testing.T) {
	denied := diag.Errorf("read default.yaml", "chmod go-w default.yaml", "others may write it")
	_, _, err := profile.Load("default", unreadable{err: denied})
	var stopped *diag.Error
	if !errors.As(err, &stopped) || !errors.Is(err, denied) || stopped.Remedy != denied.Remedy {
		t.Errorf("Load = %#v", err)
	}
	_, _, err = profile.Load("top", unreadable{err: denied})
	const want = "top.yaml:1:10: extends: read default.yaml: others may write it -> chmod go-w default.yaml\n"
	if got := problemsOf(t, err); got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

func TestAProfileThatIsNotThereSaysWhereItCouldBe(t *testing.T) {
	missing := &profile.NotFoundError{Ref: "wrok", Looked: []string{"/home/me/.claudebox/profiles"}, Known: []string{"work"}}
	_, _, err := profile.Load("wrok", unreadable{err: missing})
	var stopped *diag.Error
	if !errors.As(err, &stopped) {
		t.Fatalf("Load = %#v", err)
	}
	got := stopped.Error() + " -> " + stopped.Remedy
	const want = `open profile: no profile "wrok"; did you mean "work"?` +
		" -> see `claudebox profile list`, or write /home/me/.claudebox/profiles/wrok.yaml"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestANameIsTakenFromTheFile(t *testing.T) {
	for file, want := range map[string]string{
		"work.yaml":                  "work",
		"/etc/claudebox/go1.25.json": "go1.25",
		"a b.yml":                    "profile",
		".yaml":                      "profile",
		"/nix/store/00000000000000000000000000000000-claudebox-work.yaml": "00000000000000000000000000000000-claudebox-work",
	} {
		if got := profile.NameOf(file); got != want {
			t.Errorf("NameOf(%q) = %q, want %q", file, got, want)
		}
	}
}

func TestTheStarterIsAProfile(t *testing.T) {
	for _, name := range []string{"work", "2024", "true", "True", "NULL", "yes", "1e3", "a.b"} {
		src, err := profile.Starter(name)
		must.Do(t, err)
		p, warnings, err := readOne("x.yaml", src)
		if err != nil || len(warnings) > 0 || p.Name != name {
			t.Errorf("Starter(%q): name %q, warnings %v, %v", name, p.Name, warnings, err)
		}
	}
	if _, err := profile.Starter("a/b"); err == nil {
		t.Error("a bad name is taken")
	}
}

func TestTheStarterShowsEveryKeyRightly(t *testing.T) {
	src, err := profile.Starter("work")
	must.Do(t, err)
	all := uncommented(string(src))
	if _, _, err := readOne("x.yaml", []byte(all)); err != nil {
		t.Errorf("with its examples: %v\n%s", err, all)
	}
	for _, key := range profile.Schema().Keys {
		if !strings.Contains("\n"+all, "\n"+key.Name+":") && key.Name != "nixpkgs" {
			t.Errorf("the starter does not show %s", key.Name)
		}
	}
}

// uncommented brings the examples of the starter in: they are the comments
// without a blank behind the sign.
func uncommented(src string) string {
	lines := strings.Split(src, "\n")
	for i, line := range lines {
		if rest, found := strings.CutPrefix(line, "#"); found && (!strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "  ")) {
			lines[i] = rest
		}
	}
	return strings.Join(lines, "\n")
}
