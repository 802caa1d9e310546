# The tools of the checks, for who has no flakes: `nix-shell`.
{
  pkgs ? import <nixpkgs> { },
}:
pkgs.callPackage ./nix/shell.nix { }
