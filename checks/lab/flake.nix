{
  description = "A stand-in for nixpkgs, made of Debian's programs: for tests without network";

  outputs =
    { self }:
    {
      lib = import ./lib.nix // {
        nixosSystem =
          { modules, ... }:
          import ./nixos/lib/eval-config.nix {
            inherit modules;
            pkgs = self.legacyPackages.x86_64-linux;
          };
      };
      legacyPackages.x86_64-linux = import ./. { system = "x86_64-linux"; };
    };
}
