# The packages manifest: what Nix knew when claudebox was built, so that a
# launch evaluates nothing. Read back strictly by internal/resolve/manifest.go.
{ lib, writeText }:
{
  system,
  nixpkgs, # the source that attributes are looked up in, as a flake input has it
  tools, # name → file
  base, # attributes on PATH in every sandbox
  packages, # attribute → package
}:
let
  # Only what is installed becomes part of our closure. The rest (dev, doc, …)
  # is named, so that `package^dev` needs no evaluation, and fetched when asked.
  describe =
    package:
    let
      installed = package.meta.outputsToInstall or [ "out" ];
      path =
        output:
        if lib.elem output installed then
          package.${output}.outPath
        else
          builtins.unsafeDiscardStringContext package.${output}.outPath;
    in
    {
      drv = builtins.unsafeDiscardStringContext package.drvPath;
      outputs = lib.genAttrs package.outputs path;
      install = installed;
    }
    // lib.optionalAttrs (package ? version) { inherit (package) version; }
    // lib.optionalAttrs (package.meta ? mainProgram) { inherit (package.meta) mainProgram; };
in
writeText "claudebox-manifest.json" (
  builtins.toJSON {
    version = 1;
    inherit system tools base;
    nixpkgs = {
      path = "${nixpkgs}";
    }
    // lib.optionalAttrs (nixpkgs ? rev) { inherit (nixpkgs) rev; }
    // lib.optionalAttrs (nixpkgs ? narHash) { inherit (nixpkgs) narHash; };
    packages = lib.mapAttrs (_: describe) packages;
  }
)
