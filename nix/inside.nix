# The Nix that a sandbox has. It needs the local-overlay store: Nix itself from
# 2.24 on, and no fork of it, as an overlay may have put in the place of `nix`.
pkgs:
let
  inherit (pkgs) lib;

  suits =
    nix:
    nix != null
    && lib.elem (lib.getName nix) [
      "nix"
      "determinate-nix"
    ]
    && lib.versionAtLeast (nix.version or "0") "2.24";

  # What is not there, or throws as an alias does, is passed over.
  named =
    path:
    let
      tried = builtins.tryEval (lib.attrByPath path null pkgs);
    in
    if tried.success then tried.value else null;
  usual = named [ "nix" ];

  found = lib.findFirst suits null [
    usual
    (named [
      "nixVersions"
      "stable"
    ])
    (named [
      "nixVersions"
      "latest"
    ])
  ];
in
# One that has no such store still evaluates: a launch says so.
if found != null then
  found
else if usual != null then
  usual
else
  throw "claudebox needs Nix, and this nixpkgs has none: its attributes `nix` and `nixVersions.stable` are null or missing. An overlay has taken them away; `claudebox.override { pkgs = … }` takes another nixpkgs."
