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
          filter = path: _: baseNameOf path != ".git"; # of a checkout
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
      flake ? null, # ours, which has a claudebox-with-claude-code for who has none
      keepNixpkgs ? true, # its source in the closure, for Nix inside and for look-ups beyond the manifest
      option ? "mkClaudebox", # how errors name these arguments
      position ? path: (import ./position.nix arguments path).at, # where they were set
    }@arguments:
    let
      inherit (pkgs) lib;
      inherit (pkgs.stdenv.hostPlatform) system;

      values = {
        inherit
          lib
          pkgs
          settings
          extraPackages
          defaultProfile
          option
          ;
        profiles = lib.mapAttrs (_: profile: nothing // profile) profiles;
      };
      nothing = {
        packages = [ ];
        settings = { };
      };
      problems = import ./problems.nix (values // { inherit position; });

      base = import ./base.nix;
      toolbox = import ./toolbox.nix;
      known = pkgs // {
        nix = import ./inside.nix pkgs;
        # Of the same packages; without its database it names no package.
        comma =
          if inputs ? nix-index-database then
            (import inputs.nix-index-database { inherit pkgs; }).comma-with-db
          else
            pkgs.comma;
      };
      made = import ./profiles.nix (
        values
        // {
          inherit position;
          base = lib.getAttrs (base ++ toolbox) known;
        }
      );

      # Only Nix inside a sandbox, and a look-up beyond the manifest, read it.
      keepsSource =
        keepNixpkgs
        && (
          profiles == { }
          || lib.any (
            profile: ((settings // profile.settings or { }).nix.daemon or "") != "off"
          ) (lib.attrValues profiles)
        );

      unwrapped = pkgs.callPackage ./package.nix { };
      manifest = import ./manifest.nix {
        inherit
          pkgs
          system
          base
          toolbox
          ;
        inherit (made) packages;
        texts = lib.mapAttrsToList (_: profile: profile.text) made.profiles;
        nixpkgs = sourceOf pkgs;
        inherit keepsSource;
        tools =
          import ./tools.nix pkgs
          // lib.optionalAttrs (agentPackage != null) { agent = lib.getExe agentPackage; };
      };

      assemble =
        unwrapped: more:
        pkgs.runCommand "claudebox-${unwrapped.version}"
          {
            pname = "claudebox";
            inherit (unwrapped) version meta;
            passthru = {
              inherit
                unwrapped
                manifest
                plain
                configuration
                ;
              agent = agentPackage;
              tests = {
                version = pkgs.runCommand "claudebox-test-version" { } ''
                  ${lib.getExe plain} version | grep -F ${unwrapped.version} >$out
                '';
                profile =
                  (make {
                    inherit pkgs;
                    profiles.test.settings.network = "none";
                  }).configuration;
              };
              given = {
                inherit (values)
                  profiles
                  settings
                  extraPackages
                  defaultProfile
                  ;
                inherit system;
              };
              known = lib.attrNames (removeAttrs made.packages (base ++ toolbox));
            };
          }
          ''
            cp -r ${unwrapped} $out
            chmod -R u+w $out
            install -Dm444 ${manifest} $out/share/claudebox/manifest.json
            ${lib.optionalString (flake != null)
              # Named, not kept: it is where it was run from, or told of no more.
              "printf '%s\\n' '${builtins.unsafeDiscardStringContext "${flake}"}' > $out/share/claudebox/flake"
            }
            ${more}
          '';

      # What knows the profiles' packages, without the profiles: a module puts
      # those where the user has configuration.
      plain = assemble unwrapped "";

      # It judges the profiles and makes their plans: of the same packages, but
      # a program for the machine that builds.
      inherit (pkgs.stdenv) buildPlatform hostPlatform;
      judge =
        if buildPlatform.canExecute hostPlatform then
          plain
        else
          assemble (pkgs.buildPackages.callPackage ./package.nix { }) "";
      configuration = import ./configuration.nix {
        inherit pkgs;
        claudebox = judge;
        inherit (made) profiles;
        inherit option;
      };
    in
    if problems != [ ] then
      throw (lib.concatStringsSep "\n" problems)
    else if made.profiles == { } then
      plain
    else
      assemble unwrapped "cp -r ${configuration}/* $out/share/claudebox/";
in
arguments: arguments.pkgs.lib.makeOverridable make arguments
