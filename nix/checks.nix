# `nix flake check`: what can be judged inside a build. checks/test does the
# rest, which needs a daemon, user namespaces and a terminal.
{ self, pkgs }:
let
  inherit (pkgs) lib;
  inherit (self.packages.${pkgs.stdenv.hostPlatform.system}) claudebox;

  over =
    name: tools: script:
    pkgs.runCommand "claudebox-${name}" { nativeBuildInputs = tools; } "cd ${self}; ${script}; touch $out";

  same =
    name: file: made:
    over name [ pkgs.diffutils ] "diff ${file} ${pkgs.writeText name made}";

  # The program's own build with all of the sources, for what reads them.
  overSources =
    name: tools: script:
    claudebox.unwrapped.overrideAttrs {
      pname = "claudebox-${name}";
      src = self;
      # Not those of the other sources: checks/ imports more.
      inherit (claudebox.unwrapped) goModules;
      nativeCheckInputs = tools;
      doCheck = true;
      checkPhase = script;
    };
in
{
  inherit claudebox;

  # What a build cannot have (a folder /run, a tunnel) is named as not run.
  go-test =
    overSources "go-test"
      [
        pkgs.bubblewrap
        pkgs.git
        pkgs.jq
      ]
      ''
        set -o pipefail
        go test -json -vet=off -ldflags=-w ./cmd/... ./internal/... |
          jq --raw-input --raw-output --null-input --join-output --from-file checks/told.jq
      '';

  lint = overSources "lint" [ pkgs.go-tools ] ''
    go vet ./cmd/... ./internal/...
    staticcheck ./cmd/... ./internal/...
  '';

  go-form = over "go-form" [ pkgs.gofumpt ] ''test -z "$(gofumpt -l .)"'';

  nix-form = over "nix-form" [
    pkgs.deadnix
    pkgs.nixfmt
    pkgs.statix
  ] "find . -name '*.nix' -exec nixfmt --check {} + && deadnix --fail . && statix check .";

  shell-form = over "shell-form" [ pkgs.shellcheck ] "grep -rlE '^#!.*bash' checks .ci | xargs shellcheck -x";

  # That the manual pages are fresh is one of the Go tests.
  options = same "options" "docs/options.md" (import ../modules/reference.nix { inherit lib; });
}
