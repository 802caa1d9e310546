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

  users = mkOption {
    default = { };
    type = types.attrsOf (
      types.submodule {
        options = {
          isNormalUser = mkOption {
            type = types.bool;
            default = false;
          };
          group = mkOption {
            type = types.str;
            default = "";
          };
          extraGroups = list types.str;
        };
      }
    );
  };
  groups = mkOption {
    default = { };
    type = types.attrsOf (types.submodule { options.members = list types.str; });
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
    nix.settings = attributes;
    system.stateVersion = mkOption { type = types.str; };
    security.allowUserNamespaces = mkOption {
      type = types.bool;
      default = true;
    };
    users = {
      inherit users groups;
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
