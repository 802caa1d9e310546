# The packages manifest: what Nix knew when claudebox was built, so that a
# launch evaluates nothing. Read back strictly by internal/plan/resolve/manifest.go.
{
  pkgs,
  system,
  nixpkgs, # the source that attributes are looked up in, as a flake input has it
  keepsSource, # whether that belongs to our closure
  tools, # name → file
  base, # attributes on PATH in every sandbox
  toolbox, # and those that a profile may leave out
  packages, # attribute → { package, outputs: those that are asked for by name }
  texts, # of profiles: store paths in them belong to our closure, too
}:
let
  inherit (pkgs) lib runCommand writeText;

  # Only what is installed or asked for becomes part of our closure. The rest
  # (dev, doc, …) is named, so that `package^dev` needs no evaluation, and
  # fetched when asked.
  describe =
    { package, outputs }:
    let
      installed =
        if package.outputSpecified or false then
          [ package.outputName ]
        else
          package.meta.outputsToInstall or [ "out" ];
      path =
        output:
        if lib.elem "*" outputs || lib.elem output (installed ++ outputs) then
          package.${output}.outPath
        else
          builtins.unsafeDiscardStringContext package.${output}.outPath;
    in
    {
      outputs = lib.genAttrs package.outputs path;
      install = installed;
    }
    // lib.optionalAttrs (package ? drvPath) { drv = builtins.unsafeDiscardStringContext package.drvPath; }
    // lib.optionalAttrs (package ? version) { inherit (package) version; };

  contents = {
    version = 1;
    inherit
      system
      tools
      base
      toolbox
      ;
    nixpkgs = {
      path = if keepsSource then "${nixpkgs}" else builtins.unsafeDiscardStringContext "${nixpkgs}";
    }
    // lib.optionalAttrs (nixpkgs ? rev) { inherit (nixpkgs) rev; }
    // lib.optionalAttrs (nixpkgs ? narHash) { inherit (nixpkgs) narHash; }
    // lib.optionalAttrs (nixpkgs ? lastModified) { inherit (nixpkgs) lastModified; };
    packages = lib.mapAttrs (_: describe) packages;
  };
  roots = writeText "claudebox-roots" (builtins.toJSON (contents // { inherit texts; }));

  # What each path of our closure refers to, a line each, so that a sandbox that
  # shall see no more of the store can be made without asking the daemon.
  references = runCommand "claudebox-references" { exportReferencesGraph = [ "graph" roots ]; } ''
    awk -v roots=${roots} '{
      path = line = $0
      getline # who built it
      getline count
      while (count-- > 0) { getline; line = line " " $0 }
      if (path != roots) print line
    }' graph | sort > $out
  '';
in
writeText "claudebox-manifest.json" (
  builtins.toJSON (contents // { references = "${references}"; })
)
