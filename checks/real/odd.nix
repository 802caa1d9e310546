# checks/promises/flake/odd.nix in the real home-manager.
{
  folder, # as checks/real/prepare made it
  root, # our flake
  system,
}:
let
  inputs = import ./inputs.nix folder;
  self = import ./self.nix { inherit inputs root; };
  pkgs = inputs.nixpkgs.legacyPackages.${system};
in
import (root + "/checks/promises/flake/testdata/odd-homes.nix") {
  inherit self pkgs;
  foreign = self.packages.aarch64-linux.claudebox;
  home =
    module:
    inputs.home-manager.lib.homeManagerConfiguration {
      inherit pkgs;
      modules = [ module ];
    };
}
