# checks/flake/odd.nix in the real home-manager.
{
  folder, # as checks/real/prepare made it
  root, # our flake
  system,
}:
let
  inputs = import ./inputs.nix folder;
  self = (import (root + "/flake.nix")).outputs (inputs // { inherit self; }) // {
    outPath = toString root;
  };
  plain = inputs.nixpkgs.legacyPackages.${system};
  pkgs = plain // import (root + "/checks/flake/testdata/examples.nix") plain;
in
import (root + "/checks/flake/testdata/odd-homes.nix") {
  inherit self pkgs;
  foreign = self.packages.aarch64-linux.claudebox;
  home =
    module:
    inputs.home-manager.lib.homeManagerConfiguration {
      inherit pkgs;
      modules = [ module ];
    };
}
