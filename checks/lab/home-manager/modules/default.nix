# Evaluates a configuration, and refuses one that an assertion is against.
{
  configuration,
  lib,
  pkgs,
}:
let
  evaluated = lib.evalModules {
    modules = [ configuration ] ++ import ./modules.nix { inherit lib pkgs; };
  };
  failed = lib.filter (it: !it.assertion) evaluated.config.assertions;
in
evaluated
// {
  activationPackage =
    if failed != [ ] then
      throw "\nFailed assertions:\n${lib.concatMapStringsSep "\n" (it: "- ${it.message}") failed}"
    else
      evaluated.config.home.activationPackage;
}
