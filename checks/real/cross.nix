# Our package built on one machine for another: which programs its builds run.
{
  folder, # as checks/real/prepare made it
  root, # our flake
  system,
}:
let
  inputs = import ./inputs.nix folder;
  inherit (inputs.nixpkgs) lib;
  self = import ./self.nix { inherit inputs root; };
  cross =
    inputs.nixpkgs.legacyPackages.${system}.pkgsCross.${
      {
        x86_64-linux = "aarch64-multiplatform";
        aarch64-linux = "gnu64";
      }
      .${system}
    };
  made = self.lib.mkClaudebox {
    # The cut of nixpkgs has no Rust, and nothing of systemd, for another machine.
    pkgs =
      let
        built = cross.extend (
          final: _: {
            bubblewrap = final.hello // {
              version = "0.12.0";
            };
          }
        );
      in
      built
      // lib.genAttrs [ "procps" "ripgrep" "util-linux" ] (_: built.hello)
      // {
        inherit lib;
      };
    profiles.work.settings.network = "none";
  };
  inherit (made) configuration unwrapped;
  inherit (configuration) judge;
  runs =
    program:
    lib.hasInfix (builtins.unsafeDiscardStringContext "${program}") (
      builtins.unsafeDiscardStringContext configuration.buildCommand
    );
in
assert unwrapped.stdenv.hostPlatform.system != system;
assert judge.unwrapped.stdenv.hostPlatform.system == system;
# Neither the package nor the profiles' judge runs what is built for there.
assert lib.hasInfix "go run ./cmd/claudebox completion" unwrapped.postInstall;
assert !lib.hasInfix "$out/bin/claudebox completion" unwrapped.postInstall;
assert runs judge;
assert !runs made.plain;
{
  inherit (unwrapped) GOARCH;
  claudebox = made.drvPath;
}
