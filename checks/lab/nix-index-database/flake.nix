{
  description = "A stand-in for nix-index-database: comma with a small database";

  inputs.nixpkgs.url = "nixpkgs";

  outputs =
    { nixpkgs, ... }:
    {
      packages.x86_64-linux.comma-with-db = nixpkgs.legacyPackages.x86_64-linux.comma;
    };
}
