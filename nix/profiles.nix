# Profiles as Nix values → the packages that a manifest has to know, the text
# of each profile, and what is wrong with the values. Nothing is built here.
{
  lib,
  pkgs,
  base, # attribute → package: what the manifest knows anyway
  profiles, # name → { packages, settings }
  settings, # of every profile
  extraPackages, # of every profile, behind its own
  defaultProfile, # name, or null
  option, # what all these stand below: how a person finds them again
  position, # path below it → where it was set ("FILE:LINE:COLUMN"), or null
}:
let
  inherit (lib) concatMap isString;

  # "openssl^dev,out" → attribute and outputs; a profile's text may say both.
  parse =
    text:
    let
      parts = lib.splitString "^" text;
      path = lib.splitString "." (lib.head parts);
    in
    {
      attribute = lib.head parts;
      package = lib.attrByPath path null pkgs;
      outputs = if lib.length parts == 1 then [ ] else lib.splitString "," (lib.last parts);
    };

  # The name of a derivation's own making that an attribute may have.
  nameOf =
    package:
    let
      letters = map (part: if isString part then part else "-") (
        builtins.split "[^A-Za-z0-9_'.-]+" (lib.getName package)
      );
      name = lib.concatStrings letters;
    in
    (if builtins.match "[A-Za-z_].*" name == null then "_" else "")
    + name
    + (if package.outputSpecified or false then "-${package.outputName}" else "");

  all = extraPackages ++ concatMap (profile: profile.packages) (lib.attrValues profiles);
  texts = lib.filter isString all;
  derivations = lib.filter (package: !isString package) all;

  asked = outputs: package: { inherit outputs package; };

  # Attribute → every package that would like to be called so.
  claims = lib.zipAttrs (
    [ base ]
    ++ map (
      text:
      let
        it = parse text;
      in
      {
        ${it.attribute} = it.package;
      }
    ) (lib.filter (text: problemOf text == null) texts)
    ++ map (package: { ${nameOf package} = package; }) derivations
  );

  # Two packages of one name are told apart by their store paths.
  attributeOf =
    package:
    let
      name = nameOf package;
      alone = lib.all (other: other.outPath == package.outPath) claims.${name};
    in
    if alone then name else "${name}-${builtins.substring 11 8 (builtins.unsafeDiscardStringContext package.outPath)}";

  reference = package: if isString package then package else attributeOf package;

  problemOf =
    text:
    let
      inherit (parse text) attribute package;
    in
    if package == null then
      "nixpkgs has no ${attribute}. Look the attribute up with `nix search nixpkgs`, or give the package itself."
    else if !lib.isDerivation package then
      "${attribute} of nixpkgs is not a package. Name one that is in it, such as \"${attribute}.NAME\"."
    else
      null;

  packageProblems =
    where: packages:
    concatMap (
      package:
      let
        problem =
          if isString package then
            problemOf package
          else if !lib.isDerivation package then
            "a value of type ${builtins.typeOf package} is not a package. Give one of your `pkgs`, or its attribute as text."
          else
            null;
      in
      lib.optional (problem != null) "${option}.${where}: ${problem}"
    ) packages;

  # What these values cannot say, or say elsewhere.
  misplaced = {
    name = "a profile is named by its attribute. Remove it, or rename the attribute.";
    packages = "packages have an option of their own. Use";
    nixpkgs = "packages come from your `pkgs`. Remove it; a package of another nixpkgs can be given as a derivation.";
  };

  settingProblems =
    where: instead: values:
    map (
      key:
      "${option}.${where}.${key}: ${misplaced.${key}}${lib.optionalString (key == "packages") " ${option}.${instead}."}"
    ) (lib.filter (key: values ? ${key}) (lib.attrNames misplaced));

  profileProblems =
    name: profile:
    lib.optional (builtins.match "[A-Za-z0-9][A-Za-z0-9._+-]{0,63}" name == null)
      "${option}.profiles.${builtins.toJSON name}: this is no name for a profile. Use letters, digits, dots, pluses, dashes and underscores."
    ++ map (
      key: "${option}.profiles.${name}.${key}: a profile has `packages` and `settings`; all else is said in the latter."
    ) (lib.attrNames (removeAttrs profile [ "packages" "settings" ]))
    ++ packageProblems "profiles.${name}.packages" profile.packages
    ++ settingProblems "profiles.${name}.settings" "profiles.${name}.packages" profile.settings;

  defaultProblems =
    if defaultProfile == null || defaultProfile == "default" && profiles ? default then
      [ ]
    else if profiles ? default then
      [
        "${option}.defaultProfile: profile \"default\" is defined too, and only one of them can be the default. Remove one."
      ]
    else
      lib.optional (!(profiles ? ${defaultProfile}))
        "${option}.defaultProfile: there is no profile \"${defaultProfile}\". Define it in ${option}.profiles, or name another${
          lib.optionalString (profiles != { }) " (${lib.concatStringsSep ", " (lib.attrNames profiles)})"
        }.";

  # What is used when no profile is named: one that is called so, the one that
  # defaultProfile names, or what is said of every profile.
  withDefault =
    if profiles ? default then
      profiles
    else if defaultProfile != null then
      profiles
      // {
        default = {
          packages = [ ];
          settings.extends = defaultProfile;
          from = [ "defaultProfile" ];
        };
      }
    else if settings != { } || extraPackages != [ ] then
      profiles
      // {
        default = {
          packages = [ ];
          settings = { };
          from = [ (if settings == { } then "extraPackages" else "settings") ];
          common = true;
        };
      }
    else
      profiles;

  # One key of the file per line, so that a line of it names an option.
  describe =
    name: profile:
    let
      from = profile.from or [
        "profiles"
        name
      ];
      below = part: if profile ? from then from else from ++ part;
      # One that extends another has them from there.
      extended = lib.filter (ref: profiles ? ${ref}) (lib.toList (profile.settings.extends or [ ]));
      common = profile.common or (!(profile ? from) && extended == [ ]);
      said = lib.optionalAttrs common settings // profile.settings;
      line = key: value: path: { inherit key value path; };
      lines = [
        (line "name" name from)
        (line "packages" (map reference (profile.packages ++ lib.optionals common extraPackages)) (below [
          "packages"
        ]))
      ]
      ++ map (
        key:
        line key said.${key} (
          if profile.settings ? ${key} then
            below [
              "settings"
              key
            ]
          else
            [
              "settings"
              key
            ]
        )
      ) (lib.attrNames said);
      place =
        path:
        let
          at = position path;
        in
        lib.concatStringsSep "." ([ option ] ++ path) + lib.optionalString (at != null) ", set in ${at}";
    in
    {
      text = "{\n${
        lib.concatMapStringsSep ",\n" (it: "  ${builtins.toJSON it.key}: ${builtins.toJSON it.value}") lines
      }\n}\n";
      # Line of the text → what a person has to change.
      places = map place ([ from ] ++ map (it: it.path) lines);
    };
in
{
  problems =
    lib.concatLists (lib.mapAttrsToList profileProblems profiles)
    ++ packageProblems "extraPackages" extraPackages
    ++ settingProblems "settings" "extraPackages" settings
    ++ defaultProblems;

  # Attribute → the package, and the outputs of it that somebody asks for.
  packages = lib.zipAttrsWith (_: same: {
    inherit (lib.head same) package;
    outputs = concatMap (it: it.outputs) same;
  }) (
    [ (lib.mapAttrs (_: asked [ ]) base) ]
    ++ map (package: { ${attributeOf package} = asked [ ] package; }) derivations
    ++ map (it: { ${it.attribute} = it; }) (map parse texts)
  );

  profiles = lib.mapAttrs describe withDefault;
}
