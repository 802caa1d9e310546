# The functions of nixpkgs' lib that our own Nix files call: same names, same
# meaning, none of the rest. What is missing here fails loudly by its name.
let
  inherit (builtins)
    any
    attrNames
    concatMap
    genList
    isString
    length
    listToAttrs
    map
    stringLength
    substring
    ;

  regexCharacters = [
    "\\"
    "."
    "^"
    "$"
    "*"
    "+"
    "?"
    "("
    ")"
    "["
    "{"
    "|"
  ];

  below =
    path: folder:
    let
      prefix = toString folder + "/";
    in
    path == toString folder || substring 0 (stringLength prefix) path == prefix;
in
rec {
  inherit (builtins)
    all
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    foldl'
    genList
    head
    isAttrs
    isString
    length
    listToAttrs
    mapAttrs
    tail
    zipAttrsWith
    ;
  inherit (import ./modules.nix (import ./lib.nix))
    evalModules
    literalExpression
    literalMD
    mkDefault
    mkEnableOption
    mkForce
    mkIf
    mkMerge
    mkOption
    mkPackageOption
    optionAttrSetToDocList
    types
    ;

  genAttrs = names: f: listToAttrs (map (name: nameValuePair name (f name)) names);
  getAttrs = names: set: genAttrs names (name: set.${name});
  nameValuePair = name: value: { inherit name value; };
  mapAttrs' = f: set: listToAttrs (mapAttrsToList f set);
  mapAttrsToList = f: set: map (name: f name set.${name}) (attrNames set);
  concatMapAttrs = f: set: builtins.foldl' (found: it: found // it) { } (mapAttrsToList f set);
  filterAttrs = keep: set: getAttrs (filter (name: keep name set.${name}) (attrNames set)) set;
  attrByPath =
    path: default: set:
    if path == [ ] then
      set
    else if builtins.isAttrs set && set ? ${head path} then
      attrByPath (tail path) default set.${head path}
    else
      default;
  zipAttrs = zipAttrsWith (_: values: values);

  optional = condition: value: if condition then [ value ] else [ ];
  optionals = condition: list: if condition then list else [ ];
  optionalString = condition: text: if condition then text else "";
  optionalAttrs = condition: set: if condition then set else { };
  toList = value: if builtins.isList value then value else [ value ];
  findFirst =
    suits: default: list:
    let
      found = filter suits list;
    in
    if found == [ ] then default else head found;
  last = list: elemAt list (length list - 1);
  imap1 = f: list: genList (n: f (n + 1) (elemAt list n)) (length list);
  unique = builtins.foldl' (found: value: if elem value found then found else found ++ [ value ]) [ ];

  splitString = separator: text: filter isString (builtins.split (escapeRegex separator) text);
  escapeRegex = builtins.replaceStrings regexCharacters (map (c: "\\${c}") regexCharacters);
  concatStrings = concatStringsSep "";
  concatMapStrings = f: list: concatStrings (map f list);
  concatMapStringsSep = separator: f: list: concatStringsSep separator (map f list);
  hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
  removeSuffix =
    suffix: text:
    let
      rest = stringLength text - stringLength suffix;
    in
    if rest >= 0 && substring rest (-1) text == suffix then substring 0 rest text else text;

  isDerivation = value: value.type or "" == "derivation";
  getName =
    package:
    if isString package then
      (builtins.parseDrvName package).name
    else
      package.pname or (getName package.name);

  # Values as a person writes them, on one line or with an attribute a line.
  generators.toPretty =
    { indent ? "" }:
    value:
    let
      deeper = generators.toPretty { indent = indent + "  "; };
      lines = open: list: close: "${open}\n${concatMapStrings (it: "${indent}  ${it}\n") list}${indent}${close}";
    in
    if isDerivation value then
      "<derivation ${value.name}>"
    else if builtins.isList value then
      (if value == [ ] then "[ ]" else lines "[" (map deeper value) "]")
    else if builtins.isAttrs value then
      (if value == { } then "{ }" else lines "{" (mapAttrsToList (name: it: "${name} = ${deeper it};") value) "}")
    else if builtins.isFunction value then
      "<function>"
    else
      builtins.toJSON value;

  importJSON = file: builtins.fromJSON (builtins.readFile file);
  versionAtLeast = a: b: builtins.compareVersions a b >= 0;

  # Functions that know their arguments are sets, as nixpkgs has them: neither
  # a function nor what holds one can become JSON.
  functionArgs = f: f.__functionArgs or (builtins.functionArgs f);
  setFunctionArgs = f: args: {
    __functor = _: f;
    __functionArgs = args;
  };
  isFunction = value: builtins.isFunction value || builtins.isAttrs value && value ? __functor;

  # Whatever comes of it, a set has functions added to it.
  makeOverridable =
    f: arguments:
    let
      result = f arguments;
      known = g: setFunctionArgs g (functionArgs f);
      changed = new: arguments // (if isFunction new then new arguments else new);
      override = known (new: makeOverridable f (changed new));
      after = change: makeOverridable (known (it: change (f it))) arguments;
    in
    if builtins.isAttrs result then
      result
      // {
        inherit override;
        overrideDerivation = change: after (it: it.overrideDerivation change);
      }
      // optionalAttrs (result ? overrideAttrs) {
        overrideAttrs = change: after (it: it.overrideAttrs change);
      }
    else if builtins.isFunction result then
      setFunctionArgs result (functionArgs result) // { inherit override; }
    else
      result;

  callPackageWith =
    packages: file: arguments:
    let
      f = if isFunction file then file else import file;
    in
    makeOverridable f (builtins.intersectAttrs (functionArgs f) packages // arguments);

  getOutput =
    output: package:
    if package.outputSpecified or false then
      package
    else
      package.${output} or package.out or package;
  getLib = getOutput "lib";
  getBin = getOutput "bin";
  getExe' =
    package: program:
    if builtins.match ".*/.*" program != null then
      throw "getExe' wants the name of a program, and has ${program}"
    else
      "${getBin package}/bin/${program}";
  getExe = package: getExe' package (package.meta.mainProgram or (getName package));

  licenses = {
    mit = {
      spdxId = "MIT";
      free = true;
    };
    unfree.free = false;
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
      if builtins.isPath set && !builtins.pathExists set then
        throw "there is no ${toString set}"
      else if builtins.isPath set then
        {
          roots = [ set ];
          has = path: below path set;
        }
      else
        set;
    toSource =
      { root, fileset }:
      {
        origSrc = root;
        outPath = builtins.path {
          name = "source";
          path = root;
          filter =
            path: type:
            fileset.has path || (type == "directory" && any (start: below (toString start) path) fileset.roots);
        };
      };
  };
}
