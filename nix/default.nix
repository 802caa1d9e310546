# claudebox with its manifest, and with profiles where some are given. The
# program looks for share/claudebox beside its own bin folder, following links,
# so it is copied here rather than wrapped.
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
      profiles ? { }, # name → { packages ? [ ], settings ? { } }
      defaultProfile ? null, # the one that is used when none is named
      settings ? { }, # of every profile
      extraPackages ? [ ], # of every profile
      agentPackage ? null, # the agent; null: the one on the caller's PATH
      option ? "mkClaudebox", # how errors name these arguments
      position ? import ./position.nix arguments, # where they were set
    }@arguments:
    let
      inherit (pkgs) lib;
      inherit (pkgs.stdenv.hostPlatform) system;

      whole = lib.mapAttrs (
        _: profile: { packages = [ ]; settings = { }; } // profile
      ) profiles;
      base = import ./base.nix;
      known = pkgs // {
        comma = inputs.nix-index-database.packages.${system}.comma-with-db;
      };
      said = import ./profiles.nix {
        inherit lib pkgs defaultProfile settings extraPackages option position;
        base = lib.getAttrs base known;
        profiles = whole;
      };

      unwrapped = pkgs.callPackage ./package.nix { };
      manifest = pkgs.callPackage ./manifest.nix { } {
        inherit system base;
        nixpkgs = sourceOf pkgs;
        tools =
          pkgs.callPackage ./tools.nix { }
          // lib.optionalAttrs (agentPackage != null) { agent = lib.getExe agentPackage; };
        inherit (said) packages;
      };
      assemble =
        passthru: files:
        pkgs.runCommand "claudebox-${unwrapped.version}"
          {
            pname = "claudebox";
            inherit (unwrapped) version meta;
            passthru = passthru // {
              inherit unwrapped manifest;
            };
          }
          ''
            cp -r ${unwrapped} $out
            chmod -R u+w $out
            install -Dm444 ${manifest} $out/share/claudebox/manifest.json
            ${files}
          '';

      # What knows the profiles' packages, without the profiles: a module puts
      # those where the user has configuration.
      parts = {
        inherit plain configuration;
        known = lib.attrNames (removeAttrs said.packages base);
      };
      plain = assemble parts "";
      configuration = pkgs.callPackage ./configuration.nix { } {
        claudebox = plain;
        inherit (said) profiles;
      };
    in
    if said.problems != [ ] then
      throw (lib.concatStringsSep "\n" said.problems)
    else if said.profiles == { } then
      plain
    else
      assemble parts ''
        cp -r ${configuration}/* $out/share/claudebox/
      '';
in
arguments: arguments.pkgs.lib.makeOverridable make arguments
