# The settings of a profile as options. The profile's own schema says which
# there are: schema.json, which checks/docs writes. Types are named here, for
# who reads the manual; values are judged by the program, which tells of all
# faults at once, with the line, and what a misspelt word should have been.
{ lib, pkgs }:
let
  inherit (lib) types;
  schema = lib.importJSON ../internal/profile/schema.json;
  json = (pkgs.formats.json { }).type;

  ofKind =
    it: kind:
    {
      string = types.str;
      boolean = types.bool;
      integer = types.int;
      number = types.number;
      null = types.nullOr json;
      array = types.listOf (typeOf (it.items or { }));
      object = types.attrsOf (
        if lib.isAttrs (it.additionalProperties or null) then typeOf it.additionalProperties else json
      );
    }
    .${kind};

  typeOf =
    it:
    if it ? anyOf then
      types.oneOf (map typeOf it.anyOf)
    else if it ? type then
      types.oneOf (map (ofKind it) (lib.filter (kind: kind != "null") (lib.toList it.type)))
    else
      json;

  words =
    it:
    lib.optionalString (it ? enum) " One of ${lib.concatMapStringsSep ", " (word: "`${word}`") it.enum}.";

  # Unsaid, a key is left to what the profile extends.
  option =
    it:
    lib.mkOption (
      {
        type = json // {
          inherit (types.nullOr (typeOf it)) description;
        };
        default = null;
        description = it.description + words it;
      }
      // lib.optionalAttrs (it ? default) {
        defaultText = lib.literalMD "unsaid, which is ${builtins.toJSON it.default}";
      }
    );

  # These have options of their own, or none.
  others = [
    "name"
    "nixpkgs"
    "packages"
  ];
in
{
  type = types.submodule {
    freeformType = types.attrsOf json;
    options = lib.mapAttrs (_: option) (removeAttrs schema.properties others);
  };

  # What somebody said.
  said = lib.filterAttrs (_: value: value != null);
}
