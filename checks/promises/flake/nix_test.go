//go:build lab

package flake_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
)

// withNix is an overlay that puts another Nix in the place of `nix`: it says that it knows no store over another, as Lix
// and old versions do. more is what else the overlay has.
func withNix(more string) string {
	return `(final: prev: { nix = final.runCommand "lix-2.93.3" { pname = "lix"; version = "2.93.3"; meta.mainProgram = "nix"; } ''
		mkdir -p $out/bin
		printf '#!%s\necho "error: don'"'"'t know how to open Nix store" >&2; exit 1\n' ${final.bash}/bin/bash >$out/bin/nix
		chmod +x $out/bin/nix
	''; ` + more + ` })`
}

// The Nix inside is one that can have a store over the host's, whatever an overlay has put in the place of `nix`; where
// there is none, `check` says so and what to do (N1).
func TestTheNixInsideCanHaveAStoreOfItsOwn(t *testing.T) {
	t.Parallel()
	built := func(overlay string) string {
		return strings.TrimSpace(succeed(t, exec.Command("nix-build", "--no-out-link", "--expr", world(overlay)+"w.make { }")))
	}
	chosen := must.Read(t, filepath.Join(built(withNix(`nixVersions.stable = prev.nix;`)), "share/claudebox/manifest.json"))
	if strings.Contains(chosen, "lix-2.93.3") {
		t.Errorf("the manifest names Lix: %s", chosen)
	}
	u := newUser(t, filepath.Join(built(withNix(`nixVersions = { };`)), "bin"))
	succeed(t, u.claudebox("shell", "--yes", "--", "true")) // makes the state folder, without which nothing is tried
	stdout, stderr, _ := run(u.claudebox("check"))
	said := strings.Join(strings.Fields(stdout+stderr), " ")
	expect.Contains(t, said, "lix-2.93.3/bin/nix, with which claudebox was built, has no store of that kind (local-overlay)",
		"Nix inside evaluates, and neither builds nor fetches")
}

// What a nixpkgs may lack is not needed, or is named.
func TestOddSetsOfPackagesEvaluateOrSayWhy(t *testing.T) {
	t.Parallel()
	evaluate := func(overlay string) *exec.Cmd {
		return exec.Command("nix-instantiate", "--expr", world(overlay)+"w.make { }")
	}
	for name, overlay := range map[string]string{
		"nix is null, and nixVersions has one": `(final: prev: { nix = null; nixVersions.stable = prev.nix; })`,
		"nix is an alias that throws":          `(final: prev: { nix = throw "nix is gone"; nixVersions.stable = prev.nix; })`,
		"no locales, as with musl":             `(final: prev: { glibcLocalesUtf8 = null; })`,
		"nixVersions throws":                   `(final: prev: { nixVersions = throw "no aliases"; })`,
	} {
		t.Run(name, func(t *testing.T) { succeed(t, evaluate(overlay)) })
	}
	expect.Contains(t, fail(t, evaluate(`(final: prev: { nix = null; nixVersions = { }; })`)), "claudebox needs Nix, and this nixpkgs has none")
}

// Without flakes: from a channel, and from sources that something like npins has pinned (N8).
func TestWithoutFlakes(t *testing.T) {
	t.Parallel()
	channel := exec.Command("nix-build", "--no-out-link", root)
	channel.Env = append(os.Environ(), "NIX_PATH=nixpkgs="+lab)
	pinned := write(t, filepath.Join(folder(t), "default.nix"), `let
		sources = { claudebox = `+root+`; nixpkgs = `+lab+`; nix-index-database = `+lab+`/nix-index-database; };
		pkgs = import sources.nixpkgs { system = "x86_64-linux"; };
	in (import sources.claudebox { inherit pkgs; inherit (sources) nix-index-database; }).override { profiles.work.packages = [ pkgs.hello ]; }`)
	for name, build := range map[string]*exec.Cmd{"a channel": channel, "npins": exec.Command("nix-build", "--no-out-link", pinned)} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, filepath.Join(strings.TrimSpace(succeed(t, build)), "bin"))
			expect.Contains(t, succeed(t, u.claudebox("shell", "--yes", "--no-report", "--network", "none", "--", "nix", "eval", "--raw", "--impure", "--file", "<nixpkgs>", "hello.name")), "hello")
		})
	}
	home := fmt.Sprintf(`let pkgs = import %[1]s { system = "x86_64-linux"; }; in (import %[1]s/home-manager/modules {
		inherit pkgs; inherit (pkgs) lib;
		configuration.imports = [ (import %[2]s { inherit pkgs; }).homeModules.default { programs.claudebox.enable = true; } ];
	}).activationPackage`, lab, root)
	succeed(t, exec.Command("nix-build", "--no-out-link", "--expr", home))
	shell := exec.Command("nix-instantiate", filepath.Join(root, "shell.nix"))
	shell.Env = append(os.Environ(), "NIX_PATH=nixpkgs="+lab)
	succeed(t, shell)
}
