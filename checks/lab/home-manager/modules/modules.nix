# A stand-in for home-manager: the options that our module sets, and a
# generation with the files and programs that they come to.
{
  lib,
  pkgs,
  useNixpkgsModule ? false,
}:
let
  inherit (lib) mkOption types;

  files = mkOption {
    default = { };
    type = types.attrsOf (types.submodule { options.source = mkOption { type = types.path; }; });
  };
  text = mkOption { type = types.str; };

  outer =
    { config, ... }:
    {
      options = {
        home = {
          username = text;
          homeDirectory = text;
          stateVersion = text;
          file = files;
          packages = mkOption {
            type = types.listOf types.package;
            default = [ ];
          };
          shellAliases = mkOption {
            type = types.attrsOf types.str;
            default = { };
          };
          activation = mkOption {
            type = types.attrsOf types.anything;
            default = { };
          };
          activationPackage = mkOption { type = types.package; };
        };
        xdg.configFile = files;
        programs.claude-code = {
          enable = mkOption {
            type = types.bool;
            default = false;
          };
          package = mkOption {
            type = types.nullOr types.package;
            default = pkgs.claude-code;
          };
          finalPackage = mkOption { type = types.package; };
        };
        manual.manpages.enable = mkOption {
          type = types.bool;
          default = true;
        };
      };

      config.programs.claude-code.finalPackage =
        lib.mkIf (config.programs.claude-code.package != null) config.programs.claude-code.package;
      config.home.file = lib.mapAttrs' (name: lib.nameValuePair ".config/${name}") config.xdg.configFile;
      config.home.activationPackage = pkgs.runCommand "home-manager-generation" { } ''
        mkdir -p $out/home-files
        echo ${lib.concatStringsSep " " (lib.mapAttrsToList (name: value: "'${name}=${value}'") config.home.shellAliases)} > $out/aliases
        cp -rs ${pkgs.symlinkJoin { name = "home-manager-path"; paths = config.home.packages; }} $out/home-path
        ${lib.concatStrings (
          lib.mapAttrsToList (name: file: ''
            mkdir -p "$out/home-files/$(dirname '${name}')"
            ln -s ${file.source} "$out/home-files/"'${name}'
          '') config.home.file
        )}
      '';
    };
in
[
  outer
  { _module.args.pkgs = pkgs; }
  (pkgs.path + "/nixos/modules/misc/assertions.nix")
  (pkgs.path + "/nixos/modules/misc/meta.nix")
]
