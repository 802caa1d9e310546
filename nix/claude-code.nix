# Claude Code of nixpkgs. It is unfree: this nixpkgs allows it by name, and
# nothing else.
{ nixpkgs, pkgs }:
let
  inherit (pkgs) lib;
in
(import nixpkgs.outPath {
  inherit (pkgs.stdenv.hostPlatform) system;
  config.allowUnfreePredicate = package: lib.getName package == "claude-code";
}).claude-code
