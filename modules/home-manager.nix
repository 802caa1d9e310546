# programs.claudebox for home-manager. It writes below $XDG_CONFIG_HOME and
# nowhere else: ~/.claudebox is the program's own.
flake:
{
  config,
  lib,
  options,
  pkgs,
  ...
}:
let
  cfg = config.programs.claudebox;
  made = import ./profile.nix {
    inherit
      lib
      pkgs
      cfg
      options
      ;
  };
in
{
  imports = [ (import ./options.nix flake) ];

  config = lib.mkIf cfg.enable {
    inherit (made) assertions;
    home.packages = lib.optional (made.package != null) made.package;
    home.shellAliases = lib.mkIf (cfg.alias != null) { ${cfg.alias} = "claudebox"; };
    xdg.configFile = lib.mapAttrs' (
      name: source: lib.nameValuePair "claudebox/${name}" { inherit source; }
    ) made.files;
  };
}
