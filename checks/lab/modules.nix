# The part of nixpkgs' module system that our modules need: options, types,
# definitions with mkIf, mkMerge and mkDefault, submodules. Names and meaning
# are nixpkgs'; checks/modules.nix passes the same tests with either.
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
      ];
    in
    {
      file = called._file or file;
      imports = called.imports or [ ];
      options = if long then called.options or { } else { };
      config = if long then called.config or { } else bare;
    };

  collect =
    arguments: origin: modules:
    concatMap (
      module:
      let
        it = normalise arguments origin module;
      in
      collect arguments it.file it.imports ++ [ it ]
    ) modules;

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
    prefix: declared: definitions:
    let
      sets = concatMap (d: map (value: d // { inherit value; }) (pushDown d.value)) definitions;
      under =
        name:
        map (d: d // { value = d.value.${name}; }) (filter (d: d.value ? ${name}) sets);
      unknown = filter (name: !(declared ? ${name}) && name != "_module") (concatMap (d: attrNames d.value) sets);
      stray = head unknown;
    in
    if unknown != [ ] then
      throw "The option `${show (prefix ++ [ stray ])}' does not exist. Definition values:${showDefinitions (under stray)}"
    else
      mapAttrs (
        name: value:
        (if isOption value then evaluateOption else evaluateTree) (prefix ++ [ name ]) value (under name)
      ) declared;

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
      options = evaluateTree prefix declared (
        map (it: {
          inherit (it) file;
          value = it.config;
        }) collected
      );
      config = values options;
    in
    {
      inherit config options;
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
      merge = one;
      getSubOptions = _: { };
    }
    // type;

  # A type inside the words for another.
  phrase = type: if type.compound or false then "(${type.description})" else type.description;

  types = rec {
    anything = mkType {
      name = "anything";
      check = _: true;
      merge =
        location: definitions:
        if all (d: isSet d.value) definitions then (attrsOf anything).merge location definitions else one location definitions;
    };
    bool = mkType {
      name = "boolean";
      check = builtins.isBool;
    };
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
        name = "null or ${type.description}";
        check = value: value == null || type.check value;
        merge =
          location: definitions:
          if all (d: d.value == null) definitions then null else type.merge location definitions;
        inherit (type) getSubOptions;
      };
    either =
      a: b:
      mkType {
        name = "${a.description} or ${b.description}";
        compound = true;
        check = value: a.check value || b.check value;
        merge =
          location: definitions:
          if all (d: a.check d.value) definitions then a.merge location definitions else b.merge location definitions;
      };
    listOf =
      type:
      mkType {
        name = "list of ${phrase type}";
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
        name = "attribute set of ${phrase type}";
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
      mkType {
        name = "submodule";
        compound = true;
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
              visible = option.visible or true;
              description = option.description or null;
            }
            // lib.optionalAttrs (option ? default || option ? defaultText) {
              default = render (option.defaultText or option.default);
            }
            // lib.optionalAttrs (option ? example) { example = render option.example; }
          )
        ]
        ++ optionAttrSetToDocList (option.type.getSubOptions option.loc)
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
