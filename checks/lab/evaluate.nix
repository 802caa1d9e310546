# checks/modules.nix with what is here: the lab's stand-ins, or nixpkgs' real
# lib and the real home-manager with packages of the lab.
{
  lab, # the lab's nixpkgs, put together by checks/setup
  nixpkgsLib ? "${lab}/lib.nix",
  homeManager ? null,
}:
let
  lib = import nixpkgsLib;
  pkgs = import lab {
    system = "x86_64-linux";
    inherit lib;
  };

  flake.lib.mkClaudebox = import ../../nix {
    nixpkgs.outPath = toString pkgs.path;
    nix-index-database.packages.x86_64-linux.comma-with-db = pkgs.comma;
  };

  standIn = {
    inherit pkgs;
    homeManager = "${lab}/home-manager";
  };

  # What home-manager's own modules name of nixpkgs, though nothing is made of it.
  filled =
    lib.genAttrs [
      "glibcLocales"
      "man"
      "shared-mime-info"
    ] (_: pkgs.hello)
    // pkgs
    // {
      runCommandLocal = pkgs.runCommand;
      writeTextFile = { name, ... }: pkgs.writeText name "";
      stdenv = pkgs.stdenv // {
        hostPlatform = lib.systems.elaborate "x86_64-linux";
      };
      formats = lib.genAttrs [
        "ini"
        "json"
        "keyValue"
        "toml"
        "xml"
        "yaml"
      ] (_: pkgs.formats.json);
    };

  real = {
    inherit homeManager;
    pkgs = filled;
    # The whole of it would ask for the whole of nixpkgs.
    minimal = true;
    homeModules = [
      # Those that the rest expects to be there.
      "${homeManager}/modules/programs/fish.nix"
      "${homeManager}/modules/programs/man"
      # One that reads a file of nixpkgs outside its lib.
      { disabledModules = [ "${homeManager}/modules/services-modular" ]; }
    ];
  };
in
import ../modules.nix (
  {
    inherit flake;
    nixpkgs = lab;
  }
  // (if homeManager == null then standIn else real)
)
