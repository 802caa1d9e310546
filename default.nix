# For who has no flakes: claudebox of your own packages, from a channel or from
# what npins and the like have pinned.
#
#   nix-build                                     # with the channel <nixpkgs>
#   (import sources.claudebox { inherit pkgs; })  # a package, to install
#   (import sources.claudebox { inherit pkgs; }).homeModules.default
#   (import sources.claudebox { inherit pkgs; }).override { profiles.work = { … }; }
{
  pkgs ? import <nixpkgs> { },
  # A checkout of it, for `, NAME` inside; without one comma asks for a database.
  nix-index-database ? null,
}:
let
  flake.lib.mkClaudebox = import ./nix (
    {
      nixpkgs.outPath = null; # the source is that of pkgs
    }
    // (if nix-index-database == null then { } else { inherit nix-index-database; })
  );
  module = file: {
    _file = file;
    imports = [ (import file flake) ];
  };
in
flake.lib.mkClaudebox { inherit pkgs; }
// {
  inherit (flake) lib;
  homeModules.default = module ./modules/home-manager.nix;
  nixosModules.default = module ./modules/nixos.nix;
}
