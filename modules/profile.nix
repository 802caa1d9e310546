# What the options come to: the package that knows the profiles' packages, the
# files below a folder of claudebox's configuration, and what is wrong.
{
  lib,
  pkgs,
  cfg,
  options,
}:
let
  # The module system merges what several files say, so that only the
  # definitions know where they stand. The one that says most of a path counts.
  position =
    path:
    let
      found = map (
        definition:
        let
          it = import ../nix/position.nix definition.value (lib.tail path);
        in
        it // { at = if it.at == null then definition.file else it.at; }
      ) options.programs.claudebox.${lib.head path}.definitionsWithLocations;
      most = lib.foldl' (a: b: if b.depth > a.depth then b else a) {
        at = null;
        depth = -1;
      } found;
    in
    most.at;

  values = {
    inherit (cfg)
      profiles
      settings
      extraPackages
      defaultProfile
      ;
    option = "programs.claudebox";
  };
  here = values // {
    inherit lib pkgs;
  };

  problems =
    lib.optional (cfg.package != null && !(cfg.package ? plain))
      "programs.claudebox.package: this was not made by lib.mkClaudebox of claudebox's flake. Use what it gives, or null."
    ++ import ../nix/problems.nix here;

  # An assertion says what is wrong: nothing may fail before it is asked.
  package =
    if cfg.package == null || problems != [ ] then
      null
    else
      cfg.package.override (
        values
        // {
          inherit position;
          inherit (cfg) agentPackage;
        }
      );
  inherit
    (import ../nix/profiles.nix (
      here
      // {
        inherit position;
        base = { };
      }
    ))
    profiles
    ;

  # Nobody judges profiles where there is no claudebox to do it.
  written = name: profile: {
    "profiles/${name}.yaml" = pkgs.writeText "claudebox-${name}.yaml" profile.text;
  };
  judged = name: _: {
    "profiles/${name}.yaml" = "${package.configuration}/profiles/${name}.yaml";
    "plans/${name}.json" = "${package.configuration}/plans/${name}.json";
  };
in
{
  assertions = map (message: {
    assertion = false;
    inherit message;
  }) problems;
  package = if package == null then null else package.plain;
  files = lib.concatMapAttrs (if package == null then written else judged) profiles;
}
