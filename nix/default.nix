# claudebox with its manifest. The program looks for share/claudebox beside its
# own bin folder, following links, so it is copied here rather than wrapped.
inputs:
let
  # The source that `pkgs` came from: attributes that the manifest does not have
  # are looked up there. One that is in the store already is not copied again.
  sourceOf =
    pkgs:
    let
      path = toString pkgs.path;
    in
    if path == inputs.nixpkgs.outPath then
      inputs.nixpkgs
    else if dirOf path == builtins.storeDir then
      { outPath = builtins.appendContext path { ${path}.path = true; }; }
    else
      {
        outPath = builtins.path {
          name = "source";
          inherit (pkgs) path;
        };
      };

  make =
    {
      pkgs,
      packages ? { }, # attribute → package: known without evaluation, beside the base
    }:
    let
      inherit (pkgs.stdenv.hostPlatform) system;
      base = import ./base.nix;
      known = pkgs // {
        comma = inputs.nix-index-database.packages.${system}.comma-with-db;
      };
      unwrapped = pkgs.callPackage ./package.nix { };
      manifest = pkgs.callPackage ./manifest.nix { } {
        inherit system base;
        nixpkgs = sourceOf pkgs;
        tools = pkgs.callPackage ./tools.nix { };
        packages = pkgs.lib.getAttrs base known // packages;
      };
    in
    pkgs.runCommand "claudebox-${unwrapped.version}"
      {
        pname = "claudebox";
        inherit (unwrapped) version meta;
        passthru = { inherit unwrapped manifest; };
      }
      ''
        cp -r ${unwrapped} $out
        chmod -R u+w $out
        install -Dm444 ${manifest} $out/share/claudebox/manifest.json
      '';
in
arguments: arguments.pkgs.lib.makeOverridable make arguments
