# What is wrong with profiles as Nix values, a message each: what the profile's
# own judge would see too late, or not at all.
{
  lib,
  pkgs,
  profiles,
  settings,
  extraPackages,
  defaultProfile,
  option, # what these stand below
  position, # path below it → where it was set ("FILE:LINE:COLUMN"), or null
}:
let
  # A fault, and on a line of its own where it was written.
  fault =
    path: message:
    let
      at = position path;
    in
    "${lib.concatStringsSep "." ([ option ] ++ map name path)}: ${message}"
    + lib.optionalString (at != null) "\nIt is set in ${at}.";
  name =
    text: if builtins.match "[A-Za-z0-9_][A-Za-z0-9_+-]*" text == null then builtins.toJSON text else text;

  problemOf =
    package:
    let
      attribute = lib.head (lib.splitString "^" package);
      found = lib.attrByPath (lib.splitString "." attribute) null pkgs;
    in
    if lib.isDerivation package then
      null
    else if !lib.isString package then
      "a value of type ${builtins.typeOf package} is not a package. Give one of your `pkgs`, or its attribute as text."
    else if lib.hasPrefix builtins.storeDir package then
      "a store path as text (${builtins.baseNameOf (builtins.unsafeDiscardStringContext package)}) is no package. Give the package itself, without quotes."
    else if found == null then
      "nixpkgs has no ${attribute}. Look the attribute up with `nix search nixpkgs`, or give the package itself."
    else if !lib.isDerivation found then
      "${attribute} of nixpkgs is not a package. Name one that is in it, such as \"${attribute}.NAME\"."
    else
      null;

  ofPackages =
    path: packages:
    map (package: fault path (problemOf package)) (
      lib.filter (package: problemOf package != null) packages
    );

  # Keys of a profile that have no place among the settings.
  misplaced = {
    name = _: "a profile is named by its attribute. Remove it, or rename the attribute.";
    packages = instead: "packages have an option of their own. Use ${instead}.";
    nixpkgs =
      _:
      "packages come from your `pkgs`. Remove it; a package of another nixpkgs can be given as a derivation.";
  };

  ofSettings =
    path: instead: values:
    map (key: fault (path ++ [ key ]) (misplaced.${key} instead)) (
      lib.filter (key: values ? ${key}) (lib.attrNames misplaced)
    );

  ofProfile =
    name: profile:
    let
      path = [
        "profiles"
        name
      ];
      strange = removeAttrs profile [
        "packages"
        "settings"
      ];
    in
    lib.optional (builtins.match "[A-Za-z0-9][A-Za-z0-9._+-]{0,63}" name == null) (
      fault path "this is no name for a profile. Use letters, digits, dots, pluses, dashes and underscores."
    )
    ++ map (
      key: fault (path ++ [ key ]) "a profile has `packages` and `settings`; all else is said in the latter."
    ) (lib.attrNames strange)
    ++ ofPackages (path ++ [ "packages" ]) profile.packages
    ++ ofSettings (path ++ [ "settings" ]) "${option}.profiles.${name}.packages" profile.settings;

  others = lib.optionalString (
    profiles != { }
  ) " (${lib.concatStringsSep ", " (lib.attrNames profiles)})";

  ofDefault =
    if defaultProfile == null then
      [ ]
    else if !(profiles ? ${defaultProfile}) then
      [
        (fault [ "defaultProfile" ]
          "there is no profile \"${defaultProfile}\". Define it in ${option}.profiles, or name another${others}."
        )
      ]
    else
      lib.optional (defaultProfile != "default" && profiles ? default) (
        fault [ "defaultProfile" ]
          "profile \"default\" is defined too, and only one of them can be the default. Remove one."
      );
in
lib.concatLists (lib.mapAttrsToList ofProfile profiles)
++ ofPackages [ "extraPackages" ] extraPackages
++ ofSettings [ "settings" ] "${option}.extraPackages" settings
++ ofDefault
