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

  # Written "user.max_user_namespaces", or as nested sets in newer nixpkgs.
  sysctl =
    name:
    config.boot.kernel.sysctl.${name}
      or (lib.attrByPath (lib.splitString "." name) null config.boot.kernel.sysctl);
  forbidding = value: lib.elem value [
    0
    "0"
    false
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

    assertions = [
      {
        assertion = config.security.allowUserNamespaces;
        message = ''
          programs.claudebox: every sandbox is a user namespace, and security.allowUserNamespaces is false.
          Set it to true, or disable programs.claudebox.
        '';
      }
    ]
    ++
      map
        (name: {
          assertion = !forbidding (sysctl name);
          message = ''
            programs.claudebox: every sandbox is a user namespace, and boot.kernel.sysctl."${name}" forbids them.
            Remove that setting, or disable programs.claudebox.
          '';
        })
        [
          "user.max_user_namespaces"
          "kernel.unprivileged_userns_clone"
        ];

    warnings = lib.optional (trustedUsers != [ ]) ''
      programs.claudebox: nix.settings.trusted-users holds ${lib.concatStringsSep ", " trustedUsers}.
      Whom the Nix daemon trusts can become root through it, so no sandbox of theirs may reach it unfiltered.
      Take them out of trusted-users; substituters they need can go to nix.settings.trusted-substituters.
    '';
  };
}
