# checks/promises/modules/modules.nix inside the real home-manager, by nixpkgs' own module system.
{
  folder, # as checks/real/prepare made it
  root, # our flake
  system,
}:
let
  inputs = import ./inputs.nix folder;
  pkgs = inputs.nixpkgs.legacyPackages.${system};
  flake = import ./self.nix { inherit inputs root; };
in
import (root + "/checks/promises/modules/modules.nix") {
  inherit flake;
  pkgs =
    pkgs
    // import (root + "/checks/lab/samples.nix") {
      inherit (pkgs) lib hello runCommand;
      config = { };
    };
  nixpkgs = inputs.nixpkgs.outPath;
  homeManager = inputs.home-manager.outPath;
}
