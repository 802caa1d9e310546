# `nix flake check ./checks/homes`: the modules inside home-manager and NixOS.
# A flake of its own, so that nobody who uses claudebox's has home-manager in a
# lock file.
{
  description = "The checks of claudebox's modules";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";
    nix-index-database = {
      url = "github:nix-community/nix-index-database";
      inputs.nixpkgs.follows = "nixpkgs";
    };
    home-manager = {
      url = "github:nix-community/home-manager";
      inputs.nixpkgs.follows = "nixpkgs";
    };
  };

  outputs =
    {
      nixpkgs,
      nix-index-database,
      home-manager,
      ...
    }:
    let
      claudebox =
        (import ../../flake.nix).outputs {
          inherit nixpkgs nix-index-database;
          self = claudebox;
        }
        // {
          outPath = ../..;
        };
    in
    {
      checks = nixpkgs.lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (
        system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
          evaluated = import ../promises/modules/modules.nix {
            flake = claudebox;
            pkgs =
              pkgs
              // import ../lab/samples.nix {
                inherit (pkgs) lib hello runCommand;
                config = { };
              };
            inherit nixpkgs;
            homeManager = home-manager;
          };
        in
        {
          modules = pkgs.runCommand "claudebox-modules" { nativeBuildInputs = [ pkgs.jq ]; } ''
            jq --sort-keys . ${pkgs.writeText "modules.json" (builtins.toJSON evaluated)} | diff ${../promises/modules/modules.json} -
            touch $out
          '';
        }
      );
    };
}
