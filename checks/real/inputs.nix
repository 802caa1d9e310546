# The inputs of our flake, as a folder that checks/real/prepare made has them.
folder:
let
  flake =
    name: outputs:
    outputs
    // {
      _type = "flake";
      outPath = "${folder}/${name}";
    };
  real =
    name: self:
    flake name (
      (import "${folder}/${name}/flake.nix").outputs {
        inherit self nixpkgs;
      }
    );

  nixpkgs = flake "nixpkgs" rec {
    lib = import "${folder}/nixpkgs/lib" // {
      nixosSystem =
        { modules, system }:
        import "${folder}/nixpkgs/nixos/lib/eval-config.nix" {
          inherit modules;
          pkgs = legacyPackages.${system};
        };
    };
    legacyPackages = lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (
      system: import "${folder}/nixpkgs" { inherit system; }
    );
  };
  home-manager = real "home-manager" home-manager;
  nix-index-database = real "nix-index-database" nix-index-database;
in
{
  inherit nixpkgs home-manager nix-index-database;
}
