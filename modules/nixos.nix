# programs.claudebox for NixOS: for all users of the machine, below
# /etc/claudebox. What a user says in ~/.config/claudebox comes first.
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

  # The kernel's own switches, and the option that stands above them.
  off =
    switch:
    lib.elem (config.boot.kernel.sysctl.${switch} or null) [
      0
      "0"
      false
    ];
  namespacesForbiddenBy =
    if !config.security.allowUserNamespaces then
      "security.allowUserNamespaces"
    else
      lib.findFirst off null [
        "user.max_user_namespaces"
        "kernel.unprivileged_userns_clone"
      ];
in
{
  imports = [ (import ./options.nix flake) ];

  config = lib.mkIf cfg.enable {
    environment.systemPackages = lib.optional (made.package != null) made.package;
    environment.shellAliases = lib.mkIf (cfg.alias != null) { ${cfg.alias} = "claudebox"; };
    environment.etc = lib.mapAttrs' (
      name: source: lib.nameValuePair "claudebox/${name}" { inherit source; }
    ) made.files;

    assertions = made.assertions ++ [
      {
        assertion = namespacesForbiddenBy == null;
        message = "programs.claudebox: every sandbox is a user namespace, and ${toString namespacesForbiddenBy} forbids them. Allow them, or disable programs.claudebox.";
      }
    ];
  };
}
