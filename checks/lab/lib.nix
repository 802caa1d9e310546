# The functions of nixpkgs' lib that our own Nix files call: same names, same
# meaning, none of the rest. What is missing here fails loudly by its name.
let
  inherit (builtins)
    any
    concatMap
    listToAttrs
    map
    stringLength
    substring
    ;

  below =
    path: folder:
    let
      prefix = toString folder + "/";
    in
    path == toString folder || substring 0 (stringLength prefix) path == prefix;
in
rec {
  inherit (builtins) elem mapAttrs;

  genAttrs = names: f: listToAttrs (map (name: { inherit name; value = f name; }) names);
  getAttrs = names: set: genAttrs names (name: set.${name});
  optionalString = condition: text: if condition then text else "";
  optionalAttrs = condition: set: if condition then set else { };

  versionAtLeast = a: b: builtins.compareVersions a b >= 0;

  makeOverridable =
    f: arguments:
    f arguments // { override = other: makeOverridable f (arguments // other); };

  getOutput = output: package: package.${output} or package;
  getLib = package: package.lib or package;
  getExe' = package: program: "${package.bin or package}/bin/${program}";
  getExe = package: getExe' package package.meta.mainProgram;

  licenses.mit = {
    spdxId = "MIT";
    free = true;
  };

  # A file set is the predicate on paths that decides what belongs to it, with
  # the roots it stands on (so that folders above them are entered).
  fileset = {
    unions = sets: {
      roots = concatMap (set: (fileset.of set).roots) sets;
      has = path: any (set: (fileset.of set).has path) sets;
    };
    of =
      set:
      if builtins.isPath set then
        {
          roots = [ set ];
          has = path: below path set;
        }
      else
        set;
    toSource =
      { root, fileset }:
      builtins.path {
        name = "source";
        path = root;
        filter =
          path: type:
          fileset.has path || (type == "directory" && any (start: below (toString start) path) fileset.roots);
      };
  };
}
