# What checks/real/prepare puts in nixpkgs' place, as a flake.
{
  description = "A cut of nixpkgs with the real libraries";

  outputs =
    { self }:
    let
      lib = import ./lib;
    in
    {
      lib = lib // {
        nixosSystem =
          { modules, system }:
          import ./nixos/lib/eval-config.nix {
            inherit modules;
            pkgs = self.legacyPackages.${system};
          };
      };
      legacyPackages = lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (
        system: import ./. { inherit system; }
      );
    };
}
