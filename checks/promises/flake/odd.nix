# Odd configurations of a home: name → what is configured, and what the
# complaint says. Without one it has to work. `judged`: not before it is built.
# `whole`: of an option itself, of which the module system knows the file only,
# and which this file sets in more than one way.
{
  lib,
  pkgs,
  claudebox, # a package that mkClaudebox made with profile "packaged"
  foreign, # the same for another system
  module, # ours, for home-manager
}:
let
  inherit (lib)
    mkDefault
    mkForce
    mkIf
    mkMerge
    ;
  on = settings: { programs.claudebox = mkMerge [ { enable = true; } settings ]; };
in
{
  "enabled, nothing else".config = on { };
  "not enabled, with a fault".config.programs.claudebox.profiles.work.packages = [ 5 ];
  "imported twice".config = {
    imports = [
      module
      module
    ];
    programs.claudebox.enable = true;
  };
  "a profile without anything".config = on { profiles.work = { }; };
  "no package".config = on {
    package = null;
    profiles.work.settings.network = "inet";
  };
  "no package, mkForce".config = on {
    package = mkForce null;
    agentPackage = pkgs.hello;
  };
  "a package with a profile".config = on {
    package = claudebox;
    defaultProfile = "packaged";
  };
  "a package with a profile, and one more".config = on {
    package = claudebox;
    profiles.work.settings.extends = "packaged";
  };
  "mkIf that holds".config = on (mkIf true { profiles.work.packages = [ pkgs.hello ]; });
  "mkIf that does not, around a fault".config = on (mkIf false { profiles.work.packages = [ 5 ]; });
  "mkIf around a profile".config = on { profiles.work = mkIf true { packages = [ pkgs.hello ]; }; };
  "mkIf around a setting".config = on { profiles.work.settings.network = mkIf true "inet"; };
  "mkDefault and a plain value".config = on (mkMerge [
    { settings.network = mkDefault "full"; }
    { settings.network = "none"; }
  ]);
  "mkForce over another".config = on (mkMerge [
    { profiles.work.settings.network = "full"; }
    { profiles.work.settings.network = mkForce "none"; }
  ]);
  "mkMerge of packages".config = on {
    profiles.work.packages = mkMerge [
      [ pkgs.hello ]
      [ "jq" ]
    ];
  };
  "two definitions of a profile".config = on (mkMerge [
    { profiles.work.packages = [ pkgs.hello ]; }
    { profiles.work.settings.env.A = "1"; }
  ]);
  "lists of two definitions".config = on (mkMerge [
    { settings.hide = [ "a" ]; }
    { settings.hide = [ "b" ]; }
  ]);
  "a setting of null is none".config = on { profiles.work.settings.network = null; };
  "a store path in a variable".config = on { profiles.work.settings.env.HELLO = "${pkgs.hello}/bin/hello"; };
  "a default profile".config = on {
    defaultProfile = "work";
    profiles.work = { };
  };

  "two values for one setting" = {
    config = on (mkMerge [
      { settings.network = "full"; }
      { settings.network = "none"; }
    ]);
    wants = [ "The option `programs.claudebox.settings.network' has conflicting definition values" ];
    whole = true;
  };
  "enable is no boolean" = {
    config.programs.claudebox.enable = "yes";
    wants = [ "A definition for option `programs.claudebox.enable' is not of type `boolean'" ];
    whole = true;
  };
  "a default that is no text" = {
    config = on { defaultProfile = 5; };
    wants = [ "A definition for option `programs.claudebox.defaultProfile' is not of type `null or string'" ];
    whole = true;
  };
  "an option that is not there" = {
    config = on { profile.work = { }; };
    wants = [ "The option `programs.claudebox.profile' does not exist" ];
    whole = true;
  };
  "a part of a profile that is not there" = {
    config = on { profiles.work.pakages = [ ]; };
    wants = [ "The option `programs.claudebox.profiles.work.pakages' does not exist" ];
    whole = true;
  };
  "packages are no list" = {
    config = on { profiles.work.packages = pkgs.hello; };
    wants = [ "programs.claudebox.profiles.work.packages' is not of type `list of (package or string)'" ];
    whole = true;
  };
  "profiles are a list" = {
    config = on { profiles = [ { } ]; };
    wants = [ "A definition for option `programs.claudebox.profiles' is not of type `attribute set of (submodule)'" ];
    whole = true;
  };
  "settings are a text" = {
    config = on { settings = "network: none"; };
    wants = [ "A definition for option `programs.claudebox.settings' is not of type" ];
    whole = true;
  };
  "a package that is none" = {
    config = on { profiles.work.packages = [ 5 ]; };
    wants = [ "programs.claudebox.profiles.work.packages: a value of type int is not a package." ];
  };
  "a package as text with its store path" = {
    config = on { extraPackages = [ "${pkgs.hello}" ]; };
    wants = [ "programs.claudebox.extraPackages: a store path as text (" ];
  };
  "an attribute that is not there" = {
    config = on { profiles.work.packages = [ "helo" ]; };
    wants = [ "programs.claudebox.profiles.work.packages: nixpkgs has no helo." ];
  };
  "a default that is not there" = {
    config = on { defaultProfile = "wrok"; };
    wants = [ "programs.claudebox.defaultProfile: there is no profile \"wrok\"" ];
  };
  "a name that no profile can have" = {
    config = on { profiles."a/b" = { }; };
    wants = [ "programs.claudebox.profiles.\"a/b\": this is no name for a profile." ];
  };
  "packages among the settings" = {
    config = on { settings.packages = [ "jq" ]; };
    wants = [ "programs.claudebox.settings.packages: packages have an option of their own." ];
  };
  "a package that is no claudebox" = {
    config = on { package = pkgs.hello; };
    wants = [ "programs.claudebox.package: this was not made by lib.mkClaudebox" ];
    whole = true;
  };
  "a package of another system" = {
    config = on { package = foreign; };
    wants = [ "programs.claudebox.package: this is for aarch64-linux, and the system is x86_64-linux." ];
    whole = true;
  };
  "a word that no setting has" = {
    config = on { profiles.work.settings.network = "innet"; };
    wants = [
      "unknown word \"innet\""
      "remedy: write inet"
      "that is programs.claudebox.profiles.work.settings.network, set in "
    ];
    judged = true;
  };
  "a key that no profile has" = {
    config = on { settings.confrim = "never"; };
    wants = [
      "did you mean \"confirm\"?"
      "that is programs.claudebox.settings.confrim, set in "
    ];
    judged = true;
  };
  "a setting of the wrong kind" = {
    config = on { profiles.work.settings.hide = 5; };
    wants = [ "that is programs.claudebox.profiles.work.settings.hide, set in " ];
    judged = true;
  };
  "a variable that is a list" = {
    config = on { profiles.work.settings.env.A = [ "b" ]; };
    wants = [ "that is programs.claudebox.profiles.work.settings.env, set in " ];
    judged = true;
  };
  "a profile that extends none that is there" = {
    config = on { profiles.work.settings.extends = "base"; };
    wants = [
      "extends: no profile \"base\""
      "remedy: define programs.claudebox.profiles.base, or name another"
    ];
    judged = true;
  };
}
