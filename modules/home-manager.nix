flake:
{
  config,
  lib,
  pkgs,
  ...
}:
let
  cfg = config.programs.claudebox;
  made = import ./profile.nix { inherit lib pkgs cfg; };
in
{
  imports = [ (import ./options.nix flake) ];

  config = lib.mkIf cfg.enable {
    home.packages = lib.optional (made.package != null) made.package;
    xdg.configFile = lib.mapAttrs' (
      name: source: lib.nameValuePair "claudebox/profiles/${name}" { inherit source; }
    ) made.files;
  };
}
