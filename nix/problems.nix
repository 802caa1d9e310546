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
}:
let
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
    else if found == null then
      "nixpkgs has no ${attribute}. Look the attribute up with `nix search nixpkgs`, or give the package itself."
    else if !lib.isDerivation found then
      "${attribute} of nixpkgs is not a package. Name one that is in it, such as \"${attribute}.NAME\"."
    else
      null;

  ofPackages =
    where: packages:
    map (package: "${where}: ${problemOf package}") (
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
    where: instead: values:
    map (key: "${where}.${key}: ${misplaced.${key} instead}") (
      lib.filter (key: values ? ${key}) (lib.attrNames misplaced)
    );

  ofProfile =
    name: profile:
    let
      where = "${option}.profiles.${name}";
      strange = removeAttrs profile [
        "packages"
        "settings"
      ];
    in
    lib.optional (builtins.match "[A-Za-z0-9][A-Za-z0-9._+-]{0,63}" name == null)
      "${option}.profiles.${builtins.toJSON name}: this is no name for a profile. Use letters, digits, dots, pluses, dashes and underscores."
    ++ map (
      key: "${where}.${key}: a profile has `packages` and `settings`; all else is said in the latter."
    ) (lib.attrNames strange)
    ++ ofPackages "${where}.packages" profile.packages
    ++ ofSettings "${where}.settings" "${where}.packages" profile.settings;

  others = lib.optionalString (
    profiles != { }
  ) " (${lib.concatStringsSep ", " (lib.attrNames profiles)})";

  ofDefault =
    if defaultProfile == null then
      [ ]
    else if !(profiles ? ${defaultProfile}) then
      [
        "${option}.defaultProfile: there is no profile \"${defaultProfile}\". Define it in ${option}.profiles, or name another${others}."
      ]
    else
      lib.optional (defaultProfile != "default" && profiles ? default)
        "${option}.defaultProfile: profile \"default\" is defined too, and only one of them can be the default. Remove one.";
in
lib.concatLists (lib.mapAttrsToList ofProfile profiles)
++ ofPackages "${option}.extraPackages" extraPackages
++ ofSettings "${option}.settings" "${option}.extraPackages" settings
++ ofDefault
