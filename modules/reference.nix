# The options as Markdown: what docs/options.md holds.
{ lib }:
let
  # A default that is computed needs a defaultText: this one cannot be.
  inherit
    (lib.evalModules {
      modules = [
        (import ./options.nix {
          lib.mkClaudebox = throw "an option's default is computed and has no defaultText";
        })
      ];
      specialArgs.pkgs.formats.json = _: { type = lib.types.anything // { description = "JSON value"; }; };
    })
    options
    ;

  # Roles are nixpkgs' own; elsewhere only the words count.
  plain = builtins.replaceStrings (map (role: "{${role}}") [
    "command"
    "env"
    "file"
    "manpage"
    "option"
  ]) [ "" "" "" "" "" ];

  trim = text: lib.removeSuffix "\n" text;
  show =
    value:
    if value._type == "literalMD" then
      " ${value.text}"
    else if lib.length (lib.splitString "\n" (trim value.text)) == 1 then
      " `${value.text}`"
    else
      "\n\n```nix\n${trim value.text}\n```";

  describe = option: ''
    ## `${option.name}`

    ${trim (plain option.description)}

    *Type:* ${option.type}
    ${lib.optionalString (option ? default) "\n*Default:*${show option.default}\n"}${
      lib.optionalString (option ? example) "\n*Example:*${show option.example}\n"
    }'';
in
''
  # Options of programs.claudebox

  The same in home-manager and in NixOS. Made by `checks/docs` from `modules/options.nix`: do not edit.

  ${lib.concatMapStringsSep "\n" describe (
    lib.filter (option: !option.internal && option.visible) (lib.optionAttrSetToDocList options.programs)
  )}''
