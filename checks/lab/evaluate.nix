# checks/promises/modules/modules.nix with the lab's stand-ins for home-manager and NixOS.
{
  lab, # the lab's nixpkgs, put together by checks/setup
}:
let
  pkgs = import lab { system = "x86_64-linux"; };
in
import ../promises/modules/modules.nix {
  flake.lib.mkClaudebox = import ../../nix {
    nixpkgs.outPath = toString pkgs.path;
    nix-index-database = "${lab}/nix-index-database";
  };
  inherit pkgs;
  nixpkgs = lab;
  homeManager = "${lab}/home-manager";
}
