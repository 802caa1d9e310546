# The builders that our own Nix files call, in the form nixpkgs has them.
{
  system,
  config, # what of it is unfree may be used
  programs, # what is on PATH while something is built
  bash,
  go,
}:
let
  path = builtins.concatStringsSep ":" (map (program: "${program}/bin") programs);

  allowsUnfree =
    attributes: config.allowUnfree or false || (config.allowUnfreePredicate or (_: false)) attributes;

  # A package of a shell script, in the form mkDerivation gives: `attributes` is
  # a function of the package that comes of it. `inputs` are on PATH, `script` is
  # the builder; meta, passthru and what is below env are as in nixpkgs.
  make =
    attributes:
    let
      given = attributes package;
      outputs = given.outputs or [ "out" ];
      ours = {
        env = { };
        meta = { };
        passthru = { };
        nativeBuildInputs = [ ];
        nativeCheckInputs = [ ];
      }
      // given;
      onPath = ours.nativeBuildInputs ++ (if given.doCheck or false then ours.nativeCheckInputs else [ ]);
      drv = derivation (
        removeAttrs given [
          "env"
          "meta"
          "nativeBuildInputs"
          "nativeCheckInputs"
          "passthru"
          "script"
        ]
        // ours.env
        // {
          name = given.name or "${given.pname}-${given.version}";
          inherit system;
          builder = "${bash}/bin/bash";
          args = [
            "-euo"
            "pipefail"
            "-c"
            # The shell must end last: it would replace itself by a last command,
            # and where that closes its output before it exits, as those of
            # coreutils do, Nix takes it for hanging and kills it.
            (given.script + "\n:")
          ];
          PATH = builtins.concatStringsSep ":" (map (input: "${input}/bin") onPath ++ [ path ]);
        }
      );

      refusal =
        if ours.meta.broken or false then
          "broken"
        else if !(ours.meta.license.free or true || allowsUnfree given) then
          "of an unfree license"
        else if !(builtins.elem system (ours.meta.platforms or [ system ])) then
          "not for ${system}"
        else
          null;
      checked =
        value: if refusal == null then value else throw "${drv.name} is ${refusal}, refusing to evaluate.";

      common =
        given.passthru or { }
        // builtins.intersectAttrs {
          pname = null;
          version = null;
          env = null;
        } given
        // {
          inherit outputs;
          inherit (ours) passthru;
          inherit (drv) name type system;
          inherit (drv) drvAttrs;
          drvPath = checked drv.drvPath;
          meta = {
            inherit (drv) name;
            available = refusal == null;
            outputsToInstall = [
              (if builtins.elem "bin" outputs then "bin" else if builtins.elem "out" outputs then "out" else builtins.head outputs)
            ]
            ++ builtins.filter (output: output == "man") outputs;
          }
          // ours.meta;
          overrideAttrs =
            change:
            make (
              final:
              let
                old = attributes final;
                once = change old;
              in
              old
              // (
                if !builtins.isFunction change then
                  change
                else if builtins.isFunction once then
                  change final old
                else
                  once
              )
            );
        }
        // ours.env
        // removeAttrs drv.drvAttrs [
          "args"
          "builder"
          "name"
          "outputs"
          "system"
        ];
      output =
        name:
        common
        // specified
        // {
          outputName = name;
          outputSpecified = true;
          outPath = checked drv.${name}.outPath;
        };
      specified = builtins.listToAttrs (
        map (name: {
          inherit name;
          value = output name;
        }) outputs
      );
      package =
        common
        // specified
        // {
          outputName = builtins.head outputs;
          outPath = checked drv.outPath;
        };
    in
    package;

  run =
    name: arguments: script:
    make (_: { inherit name script; } // arguments);

in
rec {
  runCommand = run;

  writeText =
    name: text:
    run name {
      inherit text;
      passAsFile = [ "text" ];
    } ''cp "$textPath" "$out"'';

  # Links every file of each path into one tree.
  symlinkJoin =
    {
      name,
      paths,
      postBuild ? "",
      pathsToLink ? [ "/" ],
      meta ? { },
      passthru ? { },
    }:
    run name { inherit paths pathsToLink meta passthru; } ''
      mkdir -p $out
      for path in $paths; do
        for part in $pathsToLink; do
          [[ -d $path$part ]] || continue
          mkdir -p $out$part
          cp -rsf --no-preserve=mode $path$part/. $out$part/
        done
      done
      ${postBuild}
    '';
  buildEnv = symlinkJoin;

  # What Debian does not have, or what takes more than the lab: it may be named
  # and evaluated, and says so when it is built.
  absent =
    name: arguments:
    run name arguments "echo >&2 '${name} cannot be built in the lab'; exit 1";

  fetchurl = { url, ... }: throw "the lab fetches nothing: ${url}";

  # The modules of go.mod as `go mod vendor` writes them. checks/setup makes the
  # folder and puts it into the store, where it has the path that its hash says:
  # a stale vendorHash ends here.
  fetchedModules =
    hash:
    derivation {
      name = "go-modules";
      inherit system;
      builder = "/bin/sh";
      args = [
        "-c"
        "echo >&2 'no Go modules with hash ${hash} in the store: go.mod or an import has changed; run checks/vendor-hash'; exit 1"
      ];
      outputHashMode = "recursive";
      outputHashAlgo = "sha256";
      outputHash = hash;
    };

  # What Go compiles of the modules, and of the standard library for them and for
  # net/http, as its own cache. It changes rarely and takes most of the time.
  goCache =
    goMod: vendor: settings:
    run "go-cache" (settings // { inherit goMod vendor; }) ''
      export HOME=$PWD GOCACHE=$out
      mkdir module
      cd module
      printf '%s' "$goMod" > go.mod
      cp -r $vendor vendor
      grep -v '^#' vendor/modules.txt | xargs go list -e -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' | xargs go build net/http/httputil
    '';

  # What is read of `src` and the rest is asked of the package that is built, so
  # that overrideAttrs changes it. The arguments may be a function of it.
  buildGoModule =
    given:
    make (
      final:
      let
        arguments = if builtins.isFunction given then given final else given;
        settings = {
          nativeBuildInputs = arguments.nativeBuildInputs or [ ] ++ [ go ];
          env = {
            GOFLAGS = "-mod=vendor -trimpath -buildvcs=false";
            GOPROXY = "off";
            GOTOOLCHAIN = "local";
          }
          // arguments.env or { };
        };
      in
      removeAttrs arguments [
        "vendorHash"
        "subPackages"
        "postInstall"
      ]
      // settings
      // {
        goModules = fetchedModules arguments.vendorHash;
        compiled = goCache (builtins.readFile (arguments.src.origSrc + "/go.mod")) final.goModules settings;
        passthru = {
          inherit go;
          inherit (arguments) vendorHash;
        }
        // arguments.passthru or { };
        script = ''
          export HOME=$PWD GOCACHE=$PWD/cache
          cp -r --no-preserve=mode $compiled cache
          cp -r --no-preserve=mode $src source
          cp -r $goModules source/vendor
          cd source
          for package in ${toString arguments.subPackages}; do
            go build -ldflags "$ldflags" -o $out/bin/ ./$package
          done
          if [[ -n ''${doCheck-} ]]; then eval "''${checkPhase-}"; fi
          ${arguments.postInstall or ""}
        '';
      }
    );
}
