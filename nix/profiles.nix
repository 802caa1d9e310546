# Profiles as Nix values → the packages that a manifest has to know, and the
# text of each profile. Nothing is built here.
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

  # "openssl^dev,out" → the attribute, its package, and the outputs.
  parse =
    text:
    let
      parts = lib.splitString "^" text;
    in
    {
      attribute = lib.head parts;
      package = lib.attrByPath (lib.splitString "." (lib.head parts)) null pkgs;
      outputs = if lib.length parts == 1 then [ ] else lib.splitString "," (lib.last parts);
    };

  # A package that was given itself has no attribute: its own name stands for it.
  nameOf =
    package:
    let
      letters = map (part: if isString part then part else "-") (
        builtins.split "[^A-Za-z0-9_'.-]+" (lib.getName package)
      );
      name = lib.concatStrings letters;
      first = lib.optionalString (builtins.match "[A-Za-z_].*" name == null) "_";
      output = lib.optionalString (package.outputSpecified or false) "-${package.outputName}";
    in
    first + name + output;

  given = extraPackages ++ concatMap (profile: profile.packages) (lib.attrValues profiles);
  texts = map parse (lib.filter isString given);
  derivations = lib.filter (package: !isString package) given;

  # Name → every package that would like to be called so. Two of one name are
  # told apart by their store paths.
  claims = lib.zipAttrs (
    [ base ]
    ++ map (it: { ${it.attribute} = it.package; }) texts
    ++ map (package: { ${nameOf package} = package; }) derivations
  );
  attributeOf =
    package:
    let
      name = nameOf package;
      alone = lib.all (other: other.outPath == package.outPath) claims.${name};
      hash = builtins.substring 11 8 (builtins.unsafeDiscardStringContext package.outPath);
    in
    if alone then name else "${name}-${hash}";
  reference = package: if isString package then package else attributeOf package;

  # What is used when no profile is named: one that is called so, the one that
  # defaultProfile names, or what is said of every profile.
  withDefault =
    {
      default =
        if defaultProfile != null then
          {
            packages = [ ];
            settings.extends = defaultProfile;
            origin = [ "defaultProfile" ];
            common = false;
          }
        else
          {
            packages = [ ];
            settings = { };
            origin = [ (if settings == { } then "extraPackages" else "settings") ];
            common = true;
          };
    }
    // profiles;
  wanted =
    if profiles ? default || defaultProfile != null || settings != { } || extraPackages != [ ] then
      withDefault
    else
      profiles;

  # One key of the file per line, so that a line of it names an option.
  describe =
    name: profile:
    let
      # Where the profile was said; one that was made here has no parts.
      below =
        part:
        profile.origin or (
          [
            "profiles"
            name
          ]
          ++ part
        );

      # One that extends another has what is said of every profile from there.
      extended = lib.filter (ref: profiles ? ${ref}) (lib.toList (profile.settings.extends or [ ]));
      common = profile.common or (extended == [ ]);

      line = key: value: path: { inherit key value path; };
      lines = [
        (line "name" name (below [ ]))
        (line "packages" (map reference (profile.packages ++ lib.optionals common extraPackages)) (
          below [ "packages" ]
        ))
      ]
      ++ map (
        key:
        if profile.settings ? ${key} then
          line key profile.settings.${key} (below [
            "settings"
            key
          ])
        else
          line key settings.${key} [
            "settings"
            key
          ]
      ) (lib.attrNames (lib.optionalAttrs common settings // profile.settings));

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
      places = map place ([ (below [ ]) ] ++ map (it: it.path) lines);
    };

  asked = outputs: package: { inherit outputs package; };
in
{
  profiles = lib.mapAttrs describe wanted;

  # Attribute → the package, and the outputs of it that somebody asks for.
  packages =
    lib.zipAttrsWith
      (_: same: {
        inherit (lib.head same) package;
        outputs = concatMap (it: it.outputs) same;
      })
      (
        [ (lib.mapAttrs (_: asked [ ]) base) ]
        ++ map (it: { ${it.attribute} = asked it.outputs it.package; }) texts
        ++ map (package: { ${attributeOf package} = asked [ ] package; }) derivations
      );
}
