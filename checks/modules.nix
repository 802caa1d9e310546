# Evaluates the two modules with nixpkgs' real lib, which the lab does not have,
# and everything else from the lab: what they install, write and refuse.
# checks/suite compares the result with modules.json.
{
  lib, # nixpkgs' lib
  lab, # the lab's nixpkgs
}:
let
  pkgs = import lab { system = "x86_64-linux"; } // {
    inherit lib;
  };
  flake.lib.mkClaudebox = lib.makeOverridable (
    { packages ? { }, ... }:
    pkgs.runCommand "claudebox" {
      meta.mainProgram = "claudebox";
      passthru.known = lib.attrNames packages;
    } "touch $out"
  );

  # The options of the outer systems that our modules set.
  outer = {
    options = {
      assertions = lib.mkOption { default = [ ]; type = lib.types.listOf lib.types.anything; };
      home.packages = lib.mkOption { default = [ ]; };
      xdg.configFile = lib.mkOption { default = { }; };
      environment.systemPackages = lib.mkOption { default = [ ]; };
      environment.etc = lib.mkOption { default = { }; };
    };
  };

  evaluate =
    module: settings:
    let
      inherit
        (lib.evalModules {
          modules = [
            (import module flake)
            outer
            { programs.claudebox = settings; }
          ];
          specialArgs = { inherit pkgs; };
        })
        config
        ;
    in
    {
      knows = map (package: package.known) (config.home.packages ++ config.environment.systemPackages);
      writes = lib.attrNames (config.xdg.configFile // config.environment.etc);
      refuses = map (failed: failed.message) (
        lib.filter (assertion: !assertion.assertion) config.assertions
      );
    };

  # The same settings mean the same in both.
  both =
    settings:
    let
      home-manager = evaluate ../modules/home-manager.nix settings;
      nixos = evaluate ../modules/nixos.nix settings;
    in
    assert home-manager == nixos;
    nixos;
in
{
  "nothing configured writes nothing" = both { enable = true; };
  "not enabled does nothing" = both { profiles.work = { }; };
  "a profile's packages are known to the package" = both {
    enable = true;
    profiles.work.packages = [
      pkgs.hello
      "sampleSet.hello"
    ];
  };
  "a default profile is a file that extends it" = both {
    enable = true;
    defaultProfile = "work";
    profiles.work.settings.network = "none";
  };
  "a default profile must exist" = both {
    enable = true;
    defaultProfile = "wrok";
  };
  "no package still writes profiles" = both {
    enable = true;
    package = null;
    profiles.work = { };
  };
}
