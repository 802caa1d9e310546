# The part of nixpkgs' module system that our modules need: options, types,
# definitions with mkIf, mkMerge and mkDefault, submodules. Names and meaning
# are nixpkgs'; checks/promises/modules/modules.nix passes the same tests with either.
lib:
let
  inherit (builtins)
    all
    attrNames
    concatMap
    concatStringsSep
    elem
    filter
    foldl'
    functionArgs
    getAttr
    head
    isAttrs
    isFunction
    isList
    isPath
    isString
    length
    listToAttrs
    map
    mapAttrs
    ;

  show =
    path:
    concatStringsSep "." (
      map (
        name: if builtins.match "[a-zA-Z_][a-zA-Z0-9_'-]*|<name>|[*]" name == null then builtins.toJSON name else name
      ) path
    );
  isOption = value: value._type or "" == "option";
  isSet = value: isAttrs value && !(value ? _type) && !(lib.isDerivation value);

  # One module in its long form.
  normalise =
    arguments: origin: module:
    let
      file = if isPath module || isString module then toString module else origin;
      loaded = if isPath module || isString module then import module else module;
      wanted = functionArgs loaded;
      called = if isFunction loaded then loaded (mapAttrs (name: _: arguments name) wanted) else loaded;
      long = called ? config || called ? options;
      bare = removeAttrs called [
        "imports"
        "_file"
        "key"
        "_class"
        "freeformType"
      ];
    in
    {
      file = toString (called._file or file);
      key = called.key or null;
      freeform = called.freeformType or null;
      imports = called.imports or [ ];
      options = if long then called.options or { } else { };
      config = if long then called.config or { } else bare;
    };

  # Every module, what it imports before it. One with a key counts once.
  collect =
    arguments:
    let
      more =
        origin: seen: modules:
        foldl' (
          found: module:
          let
            it = normalise arguments origin module;
            inner = more it.file (found.keys ++ lib.optional (it.key != null) it.key) it.imports;
          in
          if it.key != null && elem it.key found.keys then
            found
          else
            {
              inherit (inner) keys;
              modules = found.modules ++ inner.modules ++ [ it ];
            }
        ) { keys = seen; modules = [ ]; } modules;
    in
    origin: modules: (more origin [ ] modules).modules;

  # Declarations of several modules as one tree, whose leaves are options.
  mergeDeclarations =
    prefix: list:
    foldl' (
      into: from:
      into
      // mapAttrs (
        name: value:
        if !(into ? ${name}) then
          value
        else if isOption value || isOption into.${name} then
          throw "The option `${show (prefix ++ [ name ])}' is already declared."
        else
          mergeDeclarations (prefix ++ [ name ]) [
            into.${name}
            value
          ]
      ) from
    ) { } list;

  # Conditions are pushed towards the leaves, so that what is defined where can
  # be told without asking them.
  pushDown =
    value:
    if value._type or "" == "merge" then
      concatMap pushDown value.contents
    else if value._type or "" == "if" then
      map (mapAttrs (_: lib.mkIf value.condition)) (pushDown value.content)
    else
      [ value ];

  discharge =
    value:
    if value._type or "" == "merge" then
      concatMap discharge value.contents
    else if value._type or "" == "if" then
      (if value.condition then discharge value.content else [ ])
    else
      [ value ];

  priorityOf = value: if value._type or "" == "override" then value.priority else 100;

  # The definitions that count: without conditions, of the strongest priority.
  final =
    definitions:
    let
      plain = concatMap (d: map (value: d // { inherit value; }) (discharge d.value)) definitions;
      strongest = foldl' (least: d: if priorityOf d.value < least then priorityOf d.value else least) 9999 plain;
    in
    map (d: d // { value = if d.value._type or "" == "override" then d.value.content else d.value; }) (
      filter (d: priorityOf d.value == strongest) plain
    );

  showDefinitions =
    definitions:
    lib.concatMapStrings (
      d:
      "\n- In `${d.file}'"
      + lib.optionalString (!(d.value ? _type)) ": ${lib.generators.toPretty { } d.value}"
    ) definitions;

  check =
    location: type: definitions:
    let
      wrong = filter (d: !type.check d.value) definitions;
    in
    if wrong == [ ] then
      type.merge location definitions
    else
      throw "A definition for option `${show location}' is not of type `${type.description}'. Definition values:${showDefinitions wrong}";

  evaluateOption =
    location: option: definitions:
    let
      counted = final definitions;
    in
    option
    // {
      loc = location;
      definitionsWithLocations = counted;
      isDefined = counted != [ ] || option ? default;
      value =
        if counted != [ ] then
          check location option.type counted
        else if option ? default then
          check location option.type [
            {
              file = "default";
              value = option.default;
            }
          ]
        else
          option.type.empty or (throw "The option `${show location}' was accessed but has no value defined. Try setting the option.");
    };

  # The tree of options with their values; definitions have to fit it.
  evaluateTree =
    prefix: freeform: declared: definitions:
    let
      sets = concatMap (d: map (value: d // { inherit value; }) (pushDown d.value)) definitions;
      under =
        name:
        map (d: d // { value = d.value.${name}; }) (filter (d: d.value ? ${name}) sets);
      unknown = filter (name: !(declared ? ${name}) && name != "_module") (concatMap (d: attrNames d.value) sets);
      stray = head unknown;
    in
    if unknown != [ ] && freeform == null then
      throw "The option `${show (prefix ++ [ stray ])}' does not exist. Definition values:${showDefinitions (under stray)}"
    else
      mapAttrs (
        name: value:
        (if isOption value then evaluateOption else evaluateGroup) (prefix ++ [ name ]) value (under name)
      ) declared;

  evaluateGroup = prefix: evaluateTree prefix null;

  # What no option is for, where a type is for the rest.
  free =
    prefix: freeform: declared: definitions:
    if freeform == null then
      { }
    else
      freeform.merge prefix (
        map (d: d // { value = removeAttrs d.value (attrNames declared ++ [ "_module" ]); }) (
          concatMap (d: map (value: d // { inherit value; }) (pushDown d.value)) definitions
        )
      );

  values = mapAttrs (_: value: if isOption value then value.value else values value);

  evalModules =
    {
      modules,
      specialArgs ? { },
      prefix ? [ ],
    }:
    let
      # Asked for by name, so that modules may give arguments to each other.
      arguments = name: { inherit lib config options; }.${name} or specialArgs.${name} or given.${name};
      given = foldl' (found: it: found // it.config._module.args or { }) { } collected;
      collected = collect arguments "<unknown-file>" modules;
      declared = mergeDeclarations prefix (map (getAttr "options") collected);
      definitions = map (it: {
        inherit (it) file;
        value = it.config;
      }) collected;
      freeform = lib.findFirst (it: it != null) null (map (getAttr "freeform") collected);
      options = evaluateTree prefix freeform declared definitions;
      config = free prefix freeform declared definitions // values options;
    in
    {
      inherit config options freeform;
    };

  one =
    location: definitions:
    if length definitions == 1 || all (d: d.value == (head definitions).value) definitions then
      (head definitions).value
    else
      throw "The option `${show location}' has conflicting definition values:${showDefinitions definitions}\nUse `lib.mkForce value` or `lib.mkDefault value` to change the priority on any of these definitions.";

  mkType =
    { name, check, ... }@type:
    {
      description = name;
      descriptionClass = "noun";
      merge = one;
      getSubOptions = _: { };
    }
    // type;

  # A type inside the words for another, by the classes that need no brackets.
  phrase = classes: type: if elem type.descriptionClass classes then type.description else "(${type.description})";
  element = phrase [
    "noun"
    "composite"
  ];

  types = rec {
    anything = mkType {
      name = "anything";
      check = _: true;
      merge =
        location: definitions:
        if all (d: isSet d.value) definitions then (attrsOf anything).merge location definitions else one location definitions;
    };
    json = mkType {
      name = "JSON value";
      check = _: true;
      merge =
        location: definitions:
        if all (d: isSet d.value) definitions then
          (attrsOf json).merge location definitions
        else if all (d: isList d.value) definitions then
          (listOf json).merge location definitions
        else
          one location definitions;
    };
    raw = mkType {
      name = "raw value";
      check = _: true;
    };
    bool = mkType {
      name = "boolean";
      check = builtins.isBool;
    };
    int = mkType {
      name = "signed integer";
      check = builtins.isInt;
    };
    float = mkType {
      name = "floating point number";
      check = builtins.isFloat;
    };
    number = either int float;
    oneOf = list: foldl' either (head list) (builtins.tail list);
    str = mkType {
      name = "string";
      check = isString;
    };
    package = mkType {
      name = "package";
      check = lib.isDerivation;
      merge = location: definitions: if length definitions == 1 then (head definitions).value else one location definitions;
    };
    path = mkType {
      name = "path";
      check = value: lib.isDerivation value || isPath value || isString value;
    };
    nullOr =
      type:
      mkType {
        name = "null or ${
          phrase [
            "noun"
            "conjunction"
          ] type
        }";
        descriptionClass = "conjunction";
        check = value: value == null || type.check value;
        merge =
          location: definitions:
          if all (d: d.value == null) definitions then null else type.merge location definitions;
        inherit (type) getSubOptions;
      };
    either =
      a: b:
      mkType {
        name = "${
          phrase [
            "noun"
            "conjunction"
          ] a
        } or ${
          phrase [
            "noun"
            "conjunction"
            "composite"
          ] b
        }";
        descriptionClass = "conjunction";
        check = value: a.check value || b.check value;
        merge =
          location: definitions:
          if all (d: a.check d.value) definitions then a.merge location definitions else b.merge location definitions;
      };
    listOf =
      type:
      mkType {
        name = "list of ${element type}";
        descriptionClass = "composite";
        check = isList;
        empty = [ ];
        merge =
          location: definitions:
          builtins.concatLists (
            lib.imap1 (
              n: d:
              lib.imap1 (
                m: value:
                check (location ++ [ "[definition ${toString n}-entry ${toString m}]" ]) type (final [ (d // { inherit value; }) ])
              ) d.value
            ) definitions
          );
        getSubOptions = prefix: type.getSubOptions (prefix ++ [ "*" ]);
      };
    attrsOf =
      type:
      mkType {
        name = "attribute set of ${element type}";
        descriptionClass = "composite";
        check = isSet;
        empty = { };
        merge =
          location: definitions:
          let
            sets = concatMap (d: map (value: d // { inherit value; }) (pushDown d.value)) definitions;
            under = name: final (map (d: d // { value = d.value.${name}; }) (filter (d: d.value ? ${name}) sets));
            names = lib.unique (concatMap (d: attrNames d.value) sets);
          in
          listToAttrs (
            map (name: {
              inherit name;
              value = check (location ++ [ name ]) type (under name);
            }) (filter (name: under name != [ ]) names)
          );
        getSubOptions = prefix: type.getSubOptions (prefix ++ [ "<name>" ]);
      };
    submodule =
      module:
      let
        inherit (evalModules { modules = [ module ]; }) freeform;
      in
      mkType {
        name = if freeform == null then "submodule" else "open submodule of ${element freeform}";
        descriptionClass = "other";
        check = value: isAttrs value || isFunction value || isPath value;
        merge =
          location: definitions:
          (evalModules {
            prefix = location;
            modules = [
              module
              { _module = { }; }
            ]
            ++ map (d: {
              _file = d.file;
              config = d.value;
            }) definitions;
          }).config;
        getSubOptions = prefix: (evalModules { inherit prefix; modules = [ module ]; }).options;
      };
  };

  literalExpression = text: {
    _type = "literalExpression";
    inherit text;
  };

  render =
    value:
    if value ? _type then value else literalExpression (lib.generators.toPretty { } value);

  # What a manual says of options, those of submodules included.
  optionAttrSetToDocList =
    options:
    concatMap (
      name:
      let
        option = options.${name};
      in
      if !(isOption option) then
        optionAttrSetToDocList option
      else
        [
          (
            {
              name = show option.loc;
              type = option.type.description;
              internal = option.internal or false;
              visible = option.visible or true != false;
              description = option.description or null;
            }
            // lib.optionalAttrs (option ? default || option ? defaultText) {
              default = render (option.defaultText or option.default);
            }
            // lib.optionalAttrs (option ? example) { example = render option.example; }
          )
        ]
        ++ lib.optionals (option.visible or true != "shallow") (
          optionAttrSetToDocList (option.type.getSubOptions option.loc)
        )
    ) (filter (name: !(elem name [ "_module" ])) (attrNames options));
in
{
  inherit
    evalModules
    literalExpression
    optionAttrSetToDocList
    types
    ;
  literalMD = text: {
    _type = "literalMD";
    inherit text;
  };
  mkOption = option: option // { _type = "option"; };
  mkEnableOption =
    name:
    {
      _type = "option";
      type = types.bool;
      default = false;
      example = true;
      description = "Whether to enable ${name}.";
    };
  mkPackageOption =
    pkgs: name:
    {
      nullable ? false,
      default ? name,
      example ? null,
      extraDescription ? "",
      pkgsText ? "pkgs",
    }:
    {
      _type = "option";
      type = if nullable then types.nullOr types.package else types.package;
      description =
        "The ${name} package to use." + lib.optionalString (extraDescription != "") " ${extraDescription}";
    }
    // (
      if default != null then
        {
          default = lib.attrByPath (lib.toList default) (throw "${name} cannot be found in ${pkgsText}") pkgs;
          defaultText = literalExpression "${pkgsText}.${show (lib.toList default)}";
        }
      else
        lib.optionalAttrs nullable { default = null; }
    )
    // lib.optionalAttrs (example != null) { example = literalExpression example; };
  mkIf = condition: content: {
    _type = "if";
    inherit condition content;
  };
  mkMerge = contents: {
    _type = "merge";
    inherit contents;
  };
  mkDefault = content: {
    _type = "override";
    priority = 1000;
    inherit content;
  };
  mkForce = content: {
    _type = "override";
    priority = 50;
    inherit content;
  };
}
