//go:build lab

package flake_test

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/nix/storepath"
	"claudebox/internal/plan"
)

const ours = "path:"

// homes is the flake of the checks that need home-manager.
func homes() string { return ours + root + "?dir=checks/homes" }

// Nobody who uses the flake has home-manager in a lock file (N9), and with the follows of the docs one nixpkgs.
func TestTheLockOfAUser(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	write(t, filepath.Join(dir, "flake.nix"), `{
		inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";
		inputs.claudebox.url = "github:example/claudebox";
		inputs.claudebox.inputs.nixpkgs.follows = "nixpkgs";
		outputs = _: { };
	}`)
	locks := succeed(t, nix("claudebox/", "flake", "metadata", "--json", ours+dir))
	expect.Contains(t, locks, `"claudebox"`, `"nix-index-database"`)
	if strings.Contains(locks, "home-manager") || strings.Contains(locks, "nixpkgs_2") {
		t.Error(locks)
	}
}

// TestTheFlakeIsCheckedWhole evaluates all that `nix flake check` would build.
func TestTheFlakeIsCheckedWhole(t *testing.T) {
	t.Parallel()
	_, log, err := run(nix("", "flake", "check", "--no-build", ours+root))
	if err != nil {
		t.Fatal(log)
	}
	for _, output := range []string{
		"packages.x86_64-linux.default", "apps.x86_64-linux.default", "devShells.x86_64-linux.default", "formatter.x86_64-linux",
		"checks.x86_64-linux.claudebox", "checks.x86_64-linux.go-test", "checks.x86_64-linux.lint", "checks.x86_64-linux.go-form",
		"checks.x86_64-linux.nix-form", "checks.x86_64-linux.shell-form", "checks.x86_64-linux.options",
		"nixosModules.default",
	} {
		expect.Contains(t, log, output)
	}
	if strings.Contains(log, "machine") { // it needs KVM (N11)
		t.Error(log)
	}
	if _, log, err = run(nix("", "flake", "check", "--no-build", homes())); err != nil {
		t.Fatal(log)
	}
	expect.Contains(t, log, "checks.x86_64-linux.modules")
}

// TestChecksThatTheLabCanBuild builds them in a build sandbox of Nix's own, as
// users have it: no /usr, no tun, no network, and / belongs to nobody. The others
// need what Debian lacks. The Go tests, which take minutes there, are built with
// CLAUDEBOX_LONG=1.
func TestChecksThatTheLabCanBuild(t *testing.T) {
	t.Parallel()
	words := []string{"path-info", "--derivation"}
	names := []string{"claudebox", "options"}
	if !trial.Short() {
		names = append(names, "go-test")
	}
	for _, name := range names {
		words = append(words, ours+root+"#checks.x86_64-linux."+name)
	}
	words = append(words, homes()+"#checks.x86_64-linux.modules")
	buildSandboxed(t, strings.Fields(succeed(t, nix("", words...))))
}

// buildSandboxed builds derivations with the daemon that has a build sandbox, and
// what they need, which is Debian's, with the usual one.
func buildSandboxed(t *testing.T, derivations []string) {
	t.Helper()
	socket := os.Getenv("CLAUDEBOX_LAB_SANDBOXED")
	if socket == "" {
		t.Fatal("CLAUDEBOX_LAB_SANDBOXED names no daemon with a build sandbox: run checks/test, or see checks/README.md")
	}
	needs := strings.Fields(succeed(t, exec.Command("nix-store", append([]string{"--query", "--requisites"}, derivations...)...)))
	needs = slices.DeleteFunc(needs, func(path string) bool {
		return !strings.HasSuffix(path, ".drv") || strings.Contains(path, "-claudebox-")
	})
	succeed(t, exec.Command("nix-store", append([]string{"--realise", "--quiet"}, needs...)...))
	build := exec.Command("nix-store", append([]string{"--realise", "--quiet"}, derivations...)...)
	build.Env = append(os.Environ(), "NIX_REMOTE=unix://"+socket)
	succeed(t, build)
}

// TestTheMachineTestIsEvaluated reads the script of the test that needs a
// virtual machine, and what its machine would be.
func TestTheMachineTestIsEvaluated(t *testing.T) {
	t.Parallel()
	script := succeed(t, nix("", "eval", "--raw", ours+root+"#machine-test.testScript"))
	file := write(t, filepath.Join(folder(t), "script.py"), script)
	python := succeed(t, exec.Command("nix-build", "--no-out-link", lab, "--attr", "python3"))
	succeed(t, exec.Command(strings.TrimSpace(python)+"/bin/python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", file))
	machine := succeed(t, nix("", "eval", "--raw", ours+root+"#machine-test.drvAttrs.machines"))
	expect.Contains(t, machine, `"claudebox/plans/default.json"`, `"claudebox/profiles/work.yaml"`)
}

func TestBuiltAndRunItNamesOnlyStorePaths(t *testing.T) {
	t.Parallel()
	result := filepath.Join(folder(t), "result")
	succeed(t, nix("", "build", "--out-link", result, ours+root+"#claudebox"))
	u := newUser(t, filepath.Join(result, "bin"))
	p, err := plan.Decode("plan", []byte(succeed(t, u.claudebox("plan", "--format", "json"))))
	must.Do(t, err)
	if len(p.Pins.Packages) == 0 || len(p.Pins.Tools) == 0 {
		t.Fatal("the plan pins nothing")
	}
	for _, path := range slices.Concat(p.StorePaths(), p.Path, []string{p.Pins.Nixpkgs.Path}) {
		if _, err := storepath.Of(path); err != nil {
			t.Error(err)
		}
	}
	succeed(t, u.claudebox("plan"))

	c := nix("", "run", ours+root)
	c.Args = append(c.Args, "--", "plan")
	c.Dir, c.Env = u.project, append(os.Environ(), u.environment()[:1]...)
	expect.Contains(t, succeed(t, c), "profile", "packages", "network")
}

// TestInstalledInAProfile looks for what `nix profile install` is for: the
// command, its manual and its completions.
func TestInstalledInAProfile(t *testing.T) {
	t.Parallel()
	installed := filepath.Join(folder(t), "profile")
	succeed(t, nix("", "profile", "install", "--profile", installed, ours+root))
	u := newUser(t, filepath.Join(installed, "bin"))
	expect.Contains(t, succeed(t, u.claudebox("version")), "claudebox ")
	succeed(t, u.claudebox("plan"))

	for _, page := range []string{"man1/claudebox.1", "man5/claudebox-profile.5", "man5/claudebox-plan.5"} {
		expect.Contains(t, must.Read(t, filepath.Join(installed, "share/man", page)), ".SH NAME\nclaudebox")
	}
	pages, err := filepath.Glob(filepath.Join(installed, "share/man/*/*"))
	if err != nil || len(pages) != 3 {
		t.Errorf("pages %q, %v", pages, err)
	}
	if log := lintPages(t, pages); log != "" {
		t.Error(log)
	}

	bash := filepath.Join(installed, "share/bash-completion/completions/claudebox")
	succeed(t, exec.Command("bash", "-n", bash))
	for file, want := range map[string]string{
		bash: "complete ",
		filepath.Join(installed, "share/zsh/site-functions/_claudebox"):            "#compdef claudebox",
		filepath.Join(installed, "share/fish/vendor_completions.d/claudebox.fish"): "complete ",
	} {
		expect.Contains(t, must.Read(t, file), want, "__complete")
	}
	expect.Contains(t, succeed(t, u.claudebox("__complete", "profile", "s")), "show\t", "schema\t")
	expect.Contains(t, succeed(t, u.claudebox("__complete", "profile", "show", "")), "default")
}

// lintPages is what mandoc finds wrong. That a page has no date is on purpose:
// the same sources give the same bytes.
func lintPages(t *testing.T, pages []string) string {
	t.Helper()
	stdout, stderr, err := run(exec.Command("mandoc", append([]string{"-T", "lint", "-W", "warning"}, pages...)...))
	if errors.Is(err, exec.ErrNotFound) { // it ends with a status of its own when it warns
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(stdout+stderr), "\n"), func(line string) bool {
		return strings.Contains(line, "missing date")
	})
	return strings.Join(lines, "\n")
}

// TestAProjectWithAClaudeboxOfItsOwn is the example flake, run as its README
// would say: nix run.
func TestAProjectWithAClaudeboxOfItsOwn(t *testing.T) {
	t.Parallel()
	result := filepath.Join(folder(t), "result")
	example := ours + root + "/checks/promises/flake/example"
	succeed(t, nix("claudebox/", "build", "--out-link", result, example))
	u := newUser(t, filepath.Join(result, "bin"))
	expect.Contains(t, succeed(t, u.claudebox("profile", "list")), "shop", "default", "share/claudebox/plans")
	out := succeed(t, u.claudebox("shell", "--yes", "--no-report", "--network", "none", "--", "bash", "-c", "hello; echo $SHOP"))
	expect.Contains(t, out, "Hello, world!", "open")

	// What its user says comes first.
	write(t, filepath.Join(u.home, ".config/claudebox/profiles/default.yaml"), "extends: shop\nenv: {SHOP: closed}\n")
	out = succeed(t, u.claudebox("shell", "--yes", "--no-report", "--network", "none", "--", "bash", "-c", "hello; echo $SHOP"))
	expect.Contains(t, out, "Hello, world!", "closed")
}

// TestTheRemedyForAMissingAgentEndsInALaunch follows what is printed to who has
// no Claude Code, to the letter.
func TestTheRemedyForAMissingAgentEndsInALaunch(t *testing.T) {
	t.Parallel()
	bin := strings.TrimSpace(succeed(t, nix("", "build", "--no-link", "--print-out-paths", "path:"+root+"#claudebox"))) + "/bin"
	u := newUser(t, bin)
	launch := []string{"--yes", "--no-report", "--network", "none"}
	c := u.claudebox(launch...)
	c.Env = append(c.Env, "PATH=/usr/bin:/bin")
	complaint := fail(t, c)
	_, remedy, found := strings.Cut(complaint, "claudebox: remedy: install Claude Code (")
	_, remedy, _ = strings.Cut(remedy, "or `")
	remedy, _, _ = strings.Cut(remedy, "`")
	words := strings.Fields(remedy)
	if !found || len(words) != 3 || words[0] != "nix" || words[1] != "run" || c.ProcessState.ExitCode() != 127 {
		t.Fatalf("exit status %d: %s", c.ProcessState.ExitCode(), complaint)
	}
	c = nix("", words[1:]...)
	c.Args = append(append(c.Args, "--"), append(launch, "hello")...)
	c.Dir, c.Env = u.project, append(u.environment(), "PATH="+os.Getenv("PATH"), "NIX_REMOTE=daemon")
	expect.Contains(t, succeed(t, c), "Claude Code: ", "hello")
}

// TestTheTemplateStartsAProject is `nix flake init -t` and `nix run`.
func TestTheTemplateStartsAProject(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	c := exec.Command("nix", "--extra-experimental-features", "nix-command flakes", "flake", "init", "--template", "path:"+root)
	c.Dir = dir
	succeed(t, c)
	bin := strings.TrimSpace(succeed(t, nix("claudebox/", "build", "--no-link", "--print-out-paths", "path:"+dir)))
	u := newUser(t, bin+"/bin")
	words := []string{"shell", "--yes", "--network", "none", "--", "bash", "-c", "hello; echo $GREETING"}
	expect.Contains(t, succeed(t, u.claudebox(words...)), "Hello, world!", "from the project")
	succeed(t, nix("claudebox/", "build", "--no-link", "path:"+dir+"#homeConfigurations.alice.activationPackage"))
}

// TestThePackageTestsItself builds its passthru.tests.
func TestThePackageTestsItself(t *testing.T) {
	t.Parallel()
	buildSandboxed(t, strings.Fields(succeed(t, exec.Command("nix-instantiate", "--expr", world(noOverlay)+"builtins.attrValues (w.make { }).tests"))))
}

// TestAClaudeboxForAnotherMachine is built here, for arm64: nothing of it runs
// here, and yet the profile is judged, and its plan is for there.
func TestAClaudeboxForAnotherMachine(t *testing.T) {
	t.Parallel()
	if trial.Short() {
		t.Skip("NOT RUN: Go's library is compiled for arm64, a minute; CLAUDEBOX_LONG=1 runs it")
	}
	there := "(import " + root + "/checks/promises/flake/testdata/elsewhere.nix { lab = " + lab + "; })"
	out := strings.TrimSpace(succeed(t, exec.Command("nix-build", "--no-out-link", "--expr", world(there)+`w.make { profiles.work.settings.network = "none"; }`)))
	program, err := elf.Open(out + "/bin/claudebox")
	if err != nil || program.Machine != elf.EM_AARCH64 {
		t.Errorf("it is for %v, %v", program.Machine, err)
	}
	for file, want := range map[string]string{
		"share/claudebox/plans/work.json":                `"system": "aarch64-linux"`,
		"share/claudebox/manifest.json":                  `"system":"aarch64-linux"`,
		"share/bash-completion/completions/claudebox":    "complete ",
		"share/fish/vendor_completions.d/claudebox.fish": "complete ",
		"share/zsh/site-functions/_claudebox":            "#compdef claudebox",
		"share/man/man1/claudebox.1":                     "claudebox",
		"share/claudebox/profiles/work.yaml":             `"network": "none"`,
	} {
		text, err := os.ReadFile(filepath.Join(out, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v", file, want, err)
		}
	}
}

// TestAStorePathInASettingIsInTheClosure is for a sandbox that sees no more of
// the store.
func TestAStorePathInASettingIsInTheClosure(t *testing.T) {
	t.Parallel()
	built := strings.TrimSpace(succeed(t, build(`w.make {
		profiles.default.settings = {
			env.GREETER = "${w.pkgs.hello}/bin/hello";
			nix = { store = "closure"; daemon = "off"; };
			network = "none";
		};
	}`)))
	u := newUser(t, built+"/bin")
	expect.Contains(t, succeed(t, u.claudebox("shell", "--yes", "--", "bash", "-c", "$GREETER")), "Hello, world!")
}
