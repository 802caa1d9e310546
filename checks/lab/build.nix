# The builders that our own Nix files call, in the form nixpkgs has them.
{
  system,
  programs, # what is on PATH while something is built
  bash,
  go,
}:
let
  path = builtins.concatStringsSep ":" (map (program: "${program}/bin") programs);

  # What stdenv.mkDerivation gives and we rely on: meta, passthru, pname.
  finish =
    drv: arguments:
    {
      outputs = [ "out" ];
    }
    // drv
    // {
      meta = {
        outputsToInstall = [ "out" ];
      }
      // arguments.meta or { };
      passthru = arguments.passthru or { };
    }
    // arguments.passthru or { }
    // builtins.intersectAttrs {
      pname = null;
      version = null;
    } arguments;

  run =
    name: arguments: script:
    finish (derivation (
      removeAttrs arguments [
        "meta"
        "passthru"
        "nativeBuildInputs"
      ]
      // {
        inherit name system;
        builder = "${bash}/bin/bash";
        args = [
          "-euo"
          "pipefail"
          "-c"
          # The shell must end last: it would replace itself by a last command,
          # and where that closes its output before it exits, as those of
          # coreutils do, Nix takes it for hanging and kills it.
          (script + "\n:")
        ];
        PATH = builtins.concatStringsSep ":" (
          map (input: "${input}/bin") (arguments.nativeBuildInputs or [ ]) ++ [ path ]
        );
      }
    )) arguments;
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
    }:
    run name { inherit paths pathsToLink; } ''
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

  # What Go compiles of the standard library and the modules, as its own cache.
  # It changes rarely and takes most of the time.
  goCache =
    goMod: vendor: settings:
    run "go-cache" (settings // { inherit goMod vendor; }) ''
      export HOME=$PWD GOCACHE=$out
      mkdir module
      cd module
      printf '%s' "$goMod" > go.mod
      cp -r $vendor vendor
      grep -v '^#' vendor/modules.txt | xargs go list -e -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' | xargs go build std
    '';

  buildGoModule =
    {
      pname,
      version,
      src,
      vendorHash,
      subPackages,
      ldflags,
      env ? { },
      nativeBuildInputs ? [ ],
      postInstall ? "",
      meta ? { },
      doCheck ? true,
    }:
    assert !doCheck;
    let
      goModules = fetchedModules vendorHash;
      settings = env // {
        nativeBuildInputs = nativeBuildInputs ++ [ go ];
        GOFLAGS = "-mod=vendor -trimpath -buildvcs=false";
        GOPROXY = "off";
        GOTOOLCHAIN = "local";
      };
      arguments = settings // {
        inherit
          pname
          version
          src
          meta
          goModules
          ;
        compiled = goCache (builtins.readFile (src.origSrc + "/go.mod")) goModules settings;
      };
      package = run "${pname}-${version}" arguments ''
        export HOME=$PWD GOCACHE=$PWD/cache
        cp -r --no-preserve=mode $compiled cache
        cp -r --no-preserve=mode $src source
        cp -r $goModules source/vendor
        cd source
        for package in ${toString subPackages}; do
          go build -ldflags '${toString ldflags}' -o $out/bin/ ./$package
        done
        ${postInstall}
      '';
    in
    package
    // {
      inherit goModules;
      overrideAttrs = absent "${pname}-in-another-form";
    };
}
