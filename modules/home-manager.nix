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
  claude = config.programs.claude-code or { enable = false; };
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
    programs.claudebox.agentPackage = lib.mkIf (claude.enable && claude.package != null) (
      lib.mkDefault claude.finalPackage
    );

    inherit (made) assertions;
    home.packages = lib.optional (made.package != null) made.package;
    home.shellAliases = lib.mkIf (cfg.alias != null) { ${cfg.alias} = "claudebox"; };
    xdg.configFile = lib.mapAttrs' (
      name: source: lib.nameValuePair "claudebox/${name}" { inherit source; }
    ) made.files;
  };
}
