# What the options come to: the package that knows the profiles' packages, the
# files below a folder of claudebox's configuration, and what is wrong.
{
  lib,
  pkgs,
  cfg,
  options,
}:
let
  values = {
    inherit (cfg)
      profiles
      settings
      extraPackages
      defaultProfile
      ;
    option = "programs.claudebox";
    # The module system merges what several files say, so that only the
    # definitions know where they stand.
    position =
      path:
      let
        definitions = options.programs.claudebox.${lib.head path}.definitionsWithLocations;
        found = map (
          definition:
          let
            at = import ../nix/position.nix definition.value (lib.tail path);
          in
          if at == null then definition.file else at
        ) (lib.filter (definition: lib.tail path == [ ] || definition.value ? ${lib.head (lib.tail path)}) definitions);
      in
      if found == [ ] then null else lib.head found;
  };
  said = import ../nix/profiles.nix (values // {
    inherit lib pkgs;
    base = { };
  });

  # An assertion says what is wrong: nothing may fail before it is asked.
  package =
    if cfg.package == null || said.problems != [ ] then
      null
    else
      cfg.package.override (values // { inherit (cfg) agentPackage; });

  perProfile = make: lib.mapAttrs' make said.profiles;
in
{
  inherit (said) problems;
  package = if package == null then null else package.plain;

  # Nobody judges profiles where there is no claudebox to do it.
  files =
    if package == null then
      perProfile (
        name: profile: lib.nameValuePair "profiles/${name}.yaml" (pkgs.writeText "claudebox-${name}.yaml" profile.text)
      )
    else
      perProfile (name: _: lib.nameValuePair "profiles/${name}.yaml" "${package.configuration}/profiles/${name}.yaml")
      // perProfile (name: _: lib.nameValuePair "plans/${name}.json" "${package.configuration}/plans/${name}.json");
}
