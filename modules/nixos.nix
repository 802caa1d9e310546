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
    environment.systemPackages = lib.optional (made.package != null) made.package;
    environment.etc = lib.mapAttrs' (
      name: source: lib.nameValuePair "claudebox/profiles/${name}" { inherit source; }
    ) made.files;
  };
}
