# What the options come to: the package that knows the profiles' packages, the
# files below a folder of claudebox's configuration, and what is wrong.
{
  lib,
  pkgs,
  cfg,
  options,
}:
let
  # Nix knows no place of a value that was set as a whole. Where one line of its
  # file reads as if it did, that is it.
  lineOf =
    name: definition:
    let
      shown = lib.optionalString (lib.isString definition.value) (
        lib.escapeRegex (builtins.toJSON definition.value)
      );
      sets = "(.*[^A-Za-z0-9_'-])?${name} *= *([^=].*)?${shown}.*";
      found = lib.filter (it: builtins.match sets it.text != null) (
        lib.imap1 (line: text: { inherit line text; }) (
          lib.splitString "\n" (builtins.readFile definition.file)
        )
      );
    in
    if lib.hasPrefix "/" definition.file && builtins.pathExists definition.file && lib.length found == 1 then
      "${definition.file}:${toString (lib.head found).line}"
    else
      definition.file;

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
        it // { at = if it.at == null then lineOf (lib.head path) definition else it.at; }
      ) options.programs.claudebox.${lib.head path}.definitionsWithLocations;
      most = lib.foldl' (a: b: if b.depth > a.depth then b else a) {
        at = null;
        depth = -1;
      } found;
    in
    most.at;

  inherit (import ./settings.nix { inherit lib pkgs; }) said;

  # The profiles that the package was made with, and over them those from here.
  given = cfg.package.given or { };
  values = {
    profiles =
      given.profiles or { }
      // lib.mapAttrs (_: profile: profile // { settings = said profile.settings; }) cfg.profiles;
    settings = given.settings or { } // said cfg.settings;
    extraPackages = given.extraPackages or [ ] ++ cfg.extraPackages;
    defaultProfile = if cfg.defaultProfile == null then given.defaultProfile or null else cfg.defaultProfile;
    option = "programs.claudebox";
  };
  here = values // {
    inherit lib pkgs;
  };

  ofPackage =
    message: "programs.claudebox.package: ${message}\nIt is set in ${position [ "package" ]}.";
  inherit (pkgs.stdenv.hostPlatform) system;
  systems = [
    "x86_64-linux"
    "aarch64-linux"
  ];
  problems =
    if !(lib.elem system systems) then
      [
        "programs.claudebox: there is no claudebox for ${system}, only for ${lib.concatStringsSep " and " systems}. Disable it there: programs.claudebox.enable = lib.mkIf pkgs.stdenv.hostPlatform.isLinux true."
      ]
    else
      lib.optional (cfg.package != null && !(cfg.package ? plain)) (
        ofPackage "this was not made by lib.mkClaudebox of claudebox's flake. Use what it gives, or null."
      )
      ++ lib.optional (given.system or system != system) (
        ofPackage "this is for ${given.system}, and the system is ${system}. Use claudebox.packages.\${pkgs.stdenv.hostPlatform.system}."
      )
      ++ import ../nix/problems.nix (here // { inherit position; });

  # An assertion says what is wrong: nothing may fail before it is asked.
  package =
    if cfg.package == null || problems != [ ] then
      null
    else
      cfg.package.override (
        values
        // {
          inherit position;
        }
        // lib.optionalAttrs (cfg.agentPackage != null) { inherit (cfg) agentPackage; }
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
