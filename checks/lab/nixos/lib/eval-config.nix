# A stand-in for NixOS: the options that our module reads and sets, with
# nixpkgs' names, types and defaults. Nothing is built of them.
{
  pkgs,
  modules,
  system ? null,
}:
let
  inherit (pkgs.lib) mkOption types;

  attributes = mkOption {
    type = types.attrsOf types.anything;
    default = { };
  };
  list =
    type:
    mkOption {
      type = types.listOf type;
      default = [ ];
    };

  outer.options = {
    environment = {
      systemPackages = list types.package;
      etc = mkOption {
        default = { };
        type = types.attrsOf (
          types.submodule {
            options.source = mkOption { type = types.path; };
          }
        );
      };
      shellAliases = mkOption {
        type = types.attrsOf types.str;
        default = { };
      };
    };
    boot.kernel.sysctl = attributes;
    users.users = attributes;
    system.stateVersion = mkOption { type = types.str; };
    security.allowUserNamespaces = mkOption {
      type = types.bool;
      default = true;
    };
  };
in
pkgs.lib.evalModules {
  specialArgs = { inherit pkgs; };
  modules = [
    outer
    ../modules/misc/assertions.nix
    ../modules/misc/meta.nix
  ]
  ++ modules;
}
