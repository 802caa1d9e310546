# `nix flake check`: what can be judged inside a build. checks/test does the
# rest, which needs a daemon, user namespaces and a terminal.
{ self, pkgs }:
let
  inherit (self.packages.${pkgs.stdenv.hostPlatform.system}) claudebox;
  over =
    name: tools: script:
    pkgs.runCommand name { nativeBuildInputs = tools; } "${script}; touch $out";
in
{
  inherit claudebox;

  # Without the tests that look for folders which a build does not have.
  go-test = claudebox.unwrapped.overrideAttrs {
    pname = "claudebox-go-test";
    src = self;
    doCheck = true;
    nativeCheckInputs = [
      pkgs.bubblewrap
      pkgs.git
    ];
    checkPhase = "go test -skip '${
      pkgs.lib.concatStringsSep "|" [
        "TestRefused" # /home, /usr
        "TestOldBwrapsAreToldFromNewOnes" # /usr/bin/cat
        "TestAListTooLongForAWordIsCut"
        "TestTheProcessKnowsNothingOfTheCaller"
      ]
    }' ./cmd/... ./internal/...";
  };

  nix-form = over "claudebox-nix-form" [
    pkgs.deadnix
    pkgs.nixfmt
    pkgs.statix
  ] "cd ${self} && find . -name '*.nix' -exec nixfmt --check {} + && deadnix --fail . && statix check .";

  shell-form = over "claudebox-shell-form" [ pkgs.shellcheck ] "cd ${self} && grep -rlE '^#!.*bash' checks .ci | xargs shellcheck -x";
}
