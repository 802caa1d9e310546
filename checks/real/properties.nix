# checks/promises/modules/properties.nix of nixpkgs' own libraries.
{
  folder, # as checks/real/prepare made it
  root, # our flake
  system,
}:
import (root + "/checks/promises/modules/properties.nix") {
  pkgs = (import ./inputs.nix folder).nixpkgs.legacyPackages.${system};
}
