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

  # Whom the daemon takes orders from that make him root: names, and groups
  # behind an @.
  trusted = config.nix.settings.trusted-users or [ ];
  groupsOf =
    name: user:
    [ user.group ]
    ++ user.extraGroups
    ++ lib.filter (group: lib.elem name config.users.groups.${group}.members) (
      lib.attrNames config.users.groups
    );
  trustsUser =
    name: user:
    user.isNormalUser
    && (
      lib.elem "*" trusted
      || lib.elem name trusted
      || lib.any (group: lib.elem "@${group}" trusted) (groupsOf name user)
    );
  trustedUsers = lib.attrNames (lib.filterAttrs trustsUser config.users.users);
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

    warnings = lib.optional (trustedUsers != [ ]) ''
      programs.claudebox: nix.settings.trusted-users holds ${lib.concatStringsSep ", " trustedUsers}.
      Whom the Nix daemon trusts can become root through it, so no sandbox of theirs may reach it unfiltered.
      Take them out of trusted-users; substituters they need can go to nix.settings.trusted-substituters.
    '';
  };
}
