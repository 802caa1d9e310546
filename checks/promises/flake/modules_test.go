//go:build lab

package flake_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/plan"
)

// generation is the home-manager generation of the example, in a home of its
// own.
func generation(t *testing.T) user {
	t.Helper()
	result := filepath.Join(folder(t), "result")
	succeed(t, nix("claudebox/", "build", "--out-link", result, ours+root+"/checks/promises/flake/example#homeConfigurations.alice.activationPackage"))
	u := newUser(t, filepath.Join(result, "home-path/bin"))
	// As home-manager does it: folders are made, files are links.
	succeed(t, exec.Command("cp", "-rs", "--no-preserve=mode", result+"/home-files/.", u.home))
	return u
}

func TestAGenerationWritesItsFilesAndNothingElse(t *testing.T) {
	t.Parallel()
	result := filepath.Join(folder(t), "result")
	succeed(t, nix("claudebox/", "build", "--out-link", result, ours+root+"/checks/promises/flake/example#homeConfigurations.alice.activationPackage"))
	got := strings.Fields(succeed(t, exec.Command("sh", "-c", `cd "$0"/home-files && find . ! -type d | sort`, result)))
	want := []string{
		"./.config/claudebox/plans/default.json", "./.config/claudebox/plans/quiet.json", "./.config/claudebox/plans/work.json",
		"./.config/claudebox/profiles/default.yaml", "./.config/claudebox/profiles/quiet.yaml", "./.config/claudebox/profiles/work.yaml",
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("files %q, want %q", got, want)
	}
	for _, file := range want[:3] {
		if _, err := plan.Decode(file, []byte(must.Read(t, filepath.Join(result, "home-files", file)))); err != nil {
			t.Error(err)
		}
	}
}

// TestALaunchByAModulesPlanAsksNobody traces one: no program of Nix is run,
// and no socket of the daemon's is spoken to.
func TestALaunchByAModulesPlanAsksNobody(t *testing.T) {
	t.Parallel()
	u := generation(t)
	expect.Contains(t, succeed(t, u.claudebox("profile", "list")), "(a pinned plan)")
	const script = "hello; jq --version; echo $GREETING"
	for _, round := range []string{"first", "second"} {
		printed, calls := u.traced(t, "quiet", script)
		expect.Contains(t, printed, "Hello, world!", "jq-", "from the module")
		expect.Contains(t, calls, "/bin/bwrap", "/bin/hello")
		if found := nixCalls.FindAllString(calls, -1); found != nil {
			t.Errorf("Nix is asked, the %s time:\n%s", round, strings.Join(found, "\n"))
		}
	}
	// With the daemon inside, whom it trusts is asked once; nothing is evaluated.
	_, calls := u.traced(t, "work", script)
	if found := nixPrograms.FindAllString(calls, -1); found != nil {
		t.Errorf("Nix is run:\n%s", strings.Join(found, "\n"))
	}

	// A profile that no module made: else a trace could say nothing at all.
	write(t, filepath.Join(u.home, ".config/claudebox/profiles/own.yaml"), "packages: [sampleSet.hello]\nnetwork: none\n")
	_, calls = u.traced(t, "own", "hello")
	if !nixPrograms.MatchString(calls) || !nixCalls.MatchString(calls) {
		t.Errorf("the trace does not show an evaluation:\n%s", calls)
	}
}

var (
	nixPrograms = regexp.MustCompile(`(?m)^.*execve(at)?\(.*/nix[^/"]*",.*$`)
	nixCalls    = regexp.MustCompile(nixPrograms.String() + `|(?m)^.*connect\(.*nix.*$`)
)

// traced runs a script inside, and gives what it prints with every program
// started and every connection made on the way.
func (u user) traced(t *testing.T, profile, script string) (printed, calls string) {
	t.Helper()
	file := filepath.Join(u.home, "trace")
	inside := u.claudebox("shell", "--yes", "--no-report", "--profile", profile, "--", "bash", "-c", script)
	c := exec.Command("strace", append([]string{"-f", "-qq", "-e", "trace=execve,execveat,connect", "-o", file}, inside.Args...)...)
	c.Dir, c.Env = inside.Dir, inside.Env
	return succeed(t, c), must.Read(t, file)
}

// TestTheModulesPlanIsWhatIsLaunched compares the file with what claudebox
// says it would run, in a tier that asks the daemon whom it trusts.
func TestTheModulesPlanIsWhatIsLaunched(t *testing.T) {
	t.Parallel()
	u := generation(t)
	for _, name := range []string{"default", "work", "quiet"} {
		file := filepath.Join(u.home, ".config/claudebox/plans", name+".json")
		if got := succeed(t, u.claudebox("plan", "--format", "json", "--profile", name)); got != must.Read(t, file) {
			t.Errorf("profile %s is not launched by %s", name, file)
		}
	}
}

func TestPlansThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	u := generation(t)
	file := filepath.Join(u.home, ".config/claudebox/plans/work.json")
	good, err := plan.Decode(file, []byte(must.Read(t, file)))
	must.Do(t, err)
	elsewhere := good
	elsewhere.System = "aarch64-linux"
	elsewhere.Mounts = slices.Clone(good.Mounts)
	for i, m := range elsewhere.Mounts {
		if m.Destination == "/lib64/ld-linux-x86-64.so.2" {
			elsewhere.Mounts[i].Destination = "/lib/ld-linux-aarch64.so.1"
		}
	}
	plan.SortMounts(elsewhere.Mounts)
	for name, tc := range map[string]struct{ content, cause, remedy string }{
		"of another system": {string(elsewhere.Encode()), "it is for aarch64-linux; this is x86_64-linux", "make it anew with `claudebox plan --pinned`"},
		"edited by hand":    {strings.Replace(string(good.Encode()), `"tier": "full"`, `"tier": "none"`, 1), "does not fit its digest", "make it anew with"},
	} {
		must.Do(t, os.Remove(file))
		write(t, file, tc.content)
		for _, c := range []*exec.Cmd{u.claudebox("plan", "-P", "work"), u.claudebox("shell", "-P", "work", "--yes", "--", "true")} {
			complaint := fail(t, c)
			expect.Contains(t, complaint, tc.cause, "claudebox: remedy: "+tc.remedy)
			if c.ProcessState.ExitCode() != 125 {
				t.Errorf("%s: exit status %d", name, c.ProcessState.ExitCode())
			}
		}
	}
}

// TestAChangedPackageChangesThePlan builds the same profile from two nixpkgs.
func TestAChangedPackageChangesThePlan(t *testing.T) {
	t.Parallel()
	made := func(overlay string) string {
		out := succeed(t, exec.Command("nix-build", "--no-out-link", "--expr", world(overlay)+
			`(w.make { profiles.work.packages = [ w.pkgs.hello "jq" ]; }).configuration`))
		return strings.TrimSpace(out) + "/plans/work.json"
	}
	before := made(noOverlay)
	after := made(`(_: set: { hello = set.runCommand "hello-99.0" { pname = "hello"; version = "99.0"; } "mkdir -p $out/bin; echo > $out/bin/hello"; })`)
	digests := map[string]bool{}
	for _, file := range []string{before, after} {
		p, err := plan.Decode(file, []byte(must.Read(t, file)))
		must.Do(t, err)
		digests[p.Digest()] = true
	}
	if len(digests) != 2 {
		t.Error("both plans have one digest")
	}
	u := newUser(t, filepath.Dir(os.Getenv("CLAUDEBOX_BIN")))
	difference := succeed(t, u.claudebox("plan", "--diff", before, "--plan", after))
	expect.Contains(t, difference, "hello", "99.0")
	if strings.Contains(difference, " jq ") {
		t.Errorf("jq has not changed:\n%s", difference)
	}
}

// TestFaultsFailTheBuildAndNameTheOption writes what a person may get wrong
// into a configuration of theirs.
func TestFaultsFailTheBuildAndNameTheOption(t *testing.T) {
	t.Parallel()
	const option = "programs.claudebox."
	for name, tc := range map[string]struct {
		settings string // line 3 and on of the file
		wants    []string
	}{
		"a word that no setting has": {
			"profiles.work.settings = {\n network = \"innet\";\n};",
			[]string{
				`work.yaml:4:14: network: unknown word "innet"; expected full, inet, allow or none`, "remedy: write inet",
				"that is " + option + "profiles.work.settings.network, set in HOME:4:2",
			},
		},
		"two faults, both are told": {
			"settings.confrim = \"never\";\nprofiles.work.settings.env.A-B = \"c\";",
			[]string{
				`unknown key "confrim"`, `did you mean "confirm"?`, "that is " + option + "settings.confrim, set in HOME:3:1",
				"that is " + option + "profiles.work.settings.env, set in HOME:4:1",
			},
		},
		"a profile that is not there": {
			"profiles.work.settings.extends = \"base\";",
			[]string{`extends: no profile "base"`, "that is " + option + "profiles.work.settings.extends, set in HOME:3:1", "remedy: define " + option + "profiles.base, or name another"},
		},
		"an option that is not there": {
			"profile.work = { };",
			[]string{"The option `programs.claudebox.profile' does not exist"},
		},
		"a package that is none": {
			"profiles.work.packages = [ 5 ];",
			[]string{option + "profiles.work.packages: a value of type int is not a package.", "It is set in HOME:3:1"},
		},
		"an attribute that is not there": {
			"profiles.work.packages = [ \"helo\" ];",
			[]string{option + "profiles.work.packages: nixpkgs has no helo."},
		},
		"two profiles of one name": {
			"profiles.work.settings.name = \"play\"; profiles.play = { };",
			[]string{option + "profiles.work.settings.name: a profile is named by its attribute. Remove it"},
		},
		"a default that is not there": {
			"defaultProfile = \"wrok\"; profiles.work = { };",
			[]string{option + `defaultProfile: there is no profile "wrok"`, "name another (work)", "It is set in HOME:3."},
		},
		"a package that is no claudebox": {
			"package = (import " + lab + " { system = \"x86_64-linux\"; }).hello;",
			[]string{option + "package: this was not made by lib.mkClaudebox", "It is set in HOME:3."},
		},
		"a store path among the packages of all": {
			"profiles.work = { };\nextraPackages = [\n \"/nix/store/x\" ];",
			[]string{option + "extraPackages: a store path as text (", "It is set in HOME:4."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := write(t, filepath.Join(folder(t), "home.nix"), "{ programs.claudebox = {\nenable = true;\n"+tc.settings+"\n}; }\n")
			complaint := fail(t, build("w.home "+home))
			for _, want := range tc.wants {
				expect.Contains(t, complaint, strings.ReplaceAll(want, "HOME", home))
			}
		})
	}
}

// TestFaultsOfAFlakesOwnProfilesNameTheArgument is the same without a module
// system that would know types.
func TestFaultsOfAFlakesOwnProfilesNameTheArgument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ arguments, want string }{
		"a word that no setting has":  {"profiles.a.settings.state = \"shaerd\";", "that is mkClaudebox.profiles.a.settings.state, set in HOME:1:3"},
		"a package that is none":      {"profiles.a.packages = [ 5 ];", "mkClaudebox.profiles.a.packages: a value of type int is not a package."},
		"an unknown part":             {"profiles.a.pakages = [ ];", "mkClaudebox.profiles.a.pakages: a profile has `packages` and `settings`"},
		"an unknown argument":         {"profile = { };", "unexpected argument 'profile'"},
		"a default that is not there": {"defaultProfile = \"b\";", "mkClaudebox.defaultProfile: there is no profile \"b\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, filepath.Join(folder(t), "arguments.nix"), "{ "+tc.arguments+" }\n")
			expect.Contains(t, fail(t, build("w.make (import "+file+")")), strings.ReplaceAll(tc.want, "HOME", file))
		})
	}
}

// TestThePinnedAgentIsThePlans is option agentPackage.
func TestThePinnedAgentIsThePlans(t *testing.T) {
	t.Parallel()
	bin := strings.TrimSpace(succeed(t, build(`w.make {
		agentPackage = w.pkgs.runCommand "agent" { meta.mainProgram = "claude"; } "
			mkdir -p $out/bin
			printf '#!%s\\necho this is the pinned agent: \"$@\"\\n' ${w.pkgs.bash}/bin/bash > $out/bin/claude
			chmod +x $out/bin/claude
		";
	}`))) + "/bin"
	out := succeed(t, newUser(t, bin).claudebox("--yes", "--no-report", "--network", "none", "hello"))
	expect.Contains(t, out, "this is the pinned agent: ", " hello")
}

// TestAPlanOfTheClosureNeedsNoDaemon compares what a build made of its own
// references with what Nix says.
func TestAPlanOfTheClosureNeedsNoDaemon(t *testing.T) {
	t.Parallel()
	built := strings.TrimSpace(succeed(t, build(`w.make {
		profiles.closed = { packages = [ w.pkgs.hello ]; settings = { nix.store = "closure"; nix.daemon = "off"; network = "none"; }; };
	}`)))
	file := filepath.Join(built, "share/claudebox/plans/closed.json")
	p, err := plan.Decode(file, []byte(must.Read(t, file)))
	must.Do(t, err)
	query := exec.Command("nix-store", append([]string{"--query", "--requisites"}, p.Roots()...)...)
	want := strings.Fields(succeed(t, query))
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(p.Pins.Closure, want) {
		t.Errorf("%d paths, want %d:\n%q\n%q", len(p.Pins.Closure), len(want), p.Pins.Closure, want)
	}
	u := newUser(t, filepath.Join(built, "bin"))
	_, calls := u.traced(t, "closed", "hello")
	if found := nixCalls.FindAllString(calls, -1); found != nil {
		t.Errorf("Nix is asked:\n%s", strings.Join(found, "\n"))
	}
}

// TestAMachineIsToldBeforeItIsBuilt evaluates a NixOS.
func TestAMachineIsToldBeforeItIsBuilt(t *testing.T) {
	t.Parallel()
	out := succeed(t, nix("claudebox/", "eval", "--json", ours+root+"/checks/promises/flake/example#nixosConfigurations.machine.config.environment.etc", "--apply", "builtins.attrNames"))
	if want := `["claudebox/plans/default.json","claudebox/profiles/default.yaml"]`; strings.TrimSpace(out) != want {
		t.Errorf("files %s, want %s", out, want)
	}
}
