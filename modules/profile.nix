# What the options come to: the package that knows the profiles' packages, and
# one checked file per profile.
{
  lib,
  pkgs,
  cfg,
}:
let
  json = pkgs.formats.json { };

  attribute = package: if lib.isString package then package else lib.getName package;
  resolve =
    package:
    if lib.isString package then
      lib.attrByPath (lib.splitString "." package) (throw "programs.claudebox: nixpkgs has no package ${package}") pkgs
    else
      package;
  known = lib.listToAttrs (
    map (package: lib.nameValuePair (attribute package) (resolve package)) (
      lib.concatMap (profile: profile.packages) (lib.attrValues cfg.profiles)
    )
  );

  package = if cfg.package == null then null else cfg.package.override { packages = known; };

  # JSON is YAML. The program that will read the file judges it here.
  file =
    name: contents:
    let
      written = json.generate "claudebox-${name}.yaml" contents;
    in
    if package == null then
      written
    else
      pkgs.runCommand "claudebox-${name}.yaml" { } ''
        ${lib.getExe package} profile validate ${written}
        cp ${written} $out
      '';

  profiles = lib.mapAttrs (
    name: profile:
    file name (
      {
        inherit name;
        packages = map attribute profile.packages;
      }
      // profile.settings
    )
  ) cfg.profiles;

  default = lib.optionalAttrs (cfg.defaultProfile != null) {
    default = json.generate "claudebox-default.yaml" {
      name = "default";
      extends = cfg.defaultProfile;
    };
  };
in
{
  inherit package;
  # File name below a folder of profiles → file.
  files = lib.mapAttrs' (name: lib.nameValuePair "${name}.yaml") (profiles // default);
}
