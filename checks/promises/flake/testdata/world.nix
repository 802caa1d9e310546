# What a person may write, on the lab's packages: `make` is the flake's
# mkClaudebox, `home` a home-manager generation, `system` the config of a NixOS.
{
  lab,
  root,
  overlay ? (_: _: { }),
}:
let
  nixpkgs = builtins.path {
    name = "source";
    path = lab;
  };
  pkgs = import nixpkgs {
    system = "x86_64-linux";
    overlays = [ overlay ];
  };
  flake.lib.mkClaudebox = import (root + "/nix") {
    nixpkgs.outPath = nixpkgs;
    nix-index-database = lab + "/nix-index-database";
  };
in
{
  inherit pkgs;

  make = arguments: flake.lib.mkClaudebox ({ inherit pkgs; } // arguments);

  home =
    settings:
    (import (lab + "/home-manager/modules") {
      inherit pkgs;
      inherit (pkgs) lib;
      configuration.imports = [
        (import (root + "/modules/home-manager.nix") flake)
        settings
      ];
    }).activationPackage;

  system =
    settings:
    (import (lab + "/nixos/lib/eval-config.nix") {
      inherit pkgs;
      modules = [
        (import (root + "/modules/nixos.nix") flake)
        settings
      ];
    }).config;
}
