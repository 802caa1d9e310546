# claudebox with its manifest. The program looks for share/claudebox beside its
# own bin folder, following links, so it is copied here rather than wrapped.
inputs:
{
  pkgs,
  nixpkgs ? inputs.nixpkgs, # where the profiles' attributes are looked up
  packages ? { }, # attribute → package: known without evaluation, beside the base
}:
let
  inherit (pkgs.stdenv.hostPlatform) system;
  base = import ./base.nix;
  unwrapped = pkgs.callPackage ./package.nix { };
  known = pkgs // {
    comma = inputs.nix-index-database.packages.${system}.comma-with-db;
  };
  manifest = pkgs.callPackage ./manifest.nix { } {
    inherit system nixpkgs base;
    tools = pkgs.callPackage ./tools.nix { };
    packages = pkgs.lib.getAttrs base known // packages;
  };
in
pkgs.runCommand "claudebox-${unwrapped.version}"
  {
    pname = "claudebox";
    inherit (unwrapped) version meta;
    passthru = { inherit unwrapped manifest; };
  }
  ''
    cp -r ${unwrapped} $out
    chmod -R u+w $out
    install -Dm444 ${manifest} $out/share/claudebox/manifest.json
  ''
