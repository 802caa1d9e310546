# Looks attribute paths up in a nixpkgs, in one evaluation. Runs unchanged on
# Nix 2.8 and later and on Lix; needs no experimental feature.
#
# wants   JSON: a list of attribute paths, each a list of names
# src     the nixpkgs, a store path
# system  the system to look them up for
# mode    "all": one answer each; whatever tryEval catches stays with its
#         attribute. "force": the one derivation path wanted, and nothing
#         caught, so that Nix prints the reason, which tryEval keeps to itself.
#         "probe": whether src is a package set at all
{ wants, src, system, mode }:
let
  # Naming config and overlays keeps nixpkgs from reading those of the home.
  pkgs = import (builtins.toPath src) {
    inherit system;
    config = { };
    overlays = [ ];
  };
  paths = builtins.fromJSON wants;
  deep = x: builtins.tryEval (builtins.deepSeq x x);
  orNull = r: if r.success then r.value else null;
  # A value of another type than nixpkgs promises is taken as none.
  text =
    x:
    let
      r = deep x;
    in
    if r.success && builtins.isString r.value then r.value else "";
  texts =
    x:
    let
      r = deep x;
    in
    if r.success && builtins.isList r.value then builtins.filter builtins.isString r.value else [ ];

  # Names that could have been meant: what is typed wrong is mostly of about
  # the same length. nixpkgs has some 25,000, too many to hand out.
  near =
    set: name:
    let
      length = builtins.stringLength name;
      isNear =
        other:
        let
          more = builtins.stringLength other - length;
        in
        more <= 2 && more >= -2;
    in
    builtins.filter isNear (builtins.attrNames set);

  walk =
    value: path:
    let
      r = builtins.tryEval value;
      name = builtins.head path;
    in
    if !r.success then
      { error = "throws"; }
    else if path == [ ] then
      { inherit (r) value; }
    else if !(builtins.isAttrs r.value) then
      {
        error = "not-a-set";
        rest = path;
        type = builtins.typeOf r.value;
      }
    else if !(r.value ? ${name}) then
      {
        error = "missing";
        rest = path;
        near = near r.value name;
      }
    else
      walk r.value.${name} (builtins.tail path);

  # nixpkgs keeps these flags outside the assertion that refuses the package.
  describe =
    d:
    let
      flag = f: orNull (deep (d.meta.${f} or false)) == true;
    in
    {
      version = text (d.version or (builtins.parseDrvName (text d.name)).version);
      install = texts (d.meta.outputsToInstall or [ ]);
      vulnerabilities = texts (d.meta.knownVulnerabilities or [ ]);
      flags = builtins.filter flag [
        "unfree"
        "insecure"
        "broken"
        "unsupported"
      ];
    };

  pin =
    d:
    let
      outputs = d.outputs or [ "out" ];
    in
    deep {
      inherit (d) drvPath;
      default = d.outputName or (builtins.head outputs);
      outputs = builtins.listToAttrs (
        map (name: {
          inherit name;
          value = (d.${name} or d).outPath;
        }) outputs
      );
    };

  answer =
    path:
    let
      found = walk pkgs path;
      d = found.value;
      pinned = pin d;
    in
    if found ? error then
      found
    else if !(builtins.isAttrs d) || orNull (deep (d.type or null)) != "derivation" then
      {
        error = "not-a-package";
        type = builtins.typeOf d;
      }
    else
      describe d // (if pinned.success then pinned.value else { error = "refused"; });

  force = path: (builtins.foldl' (set: name: set.${name}) pkgs path).drvPath;
in
if mode == "probe" then
  builtins.isAttrs pkgs
else
  map (if mode == "force" then force else answer) paths
