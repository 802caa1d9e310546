# Packages that exist for the tests of attribute look-up: every way in which
# nixpkgs can have, refuse or not have a package.
{
  lib,
  config,
  hello,
  runCommand,
}:
let
  # A package whose evaluation is refused, as nixpkgs' check-meta does it: the
  # reason stays readable in meta.
  refused =
    reason: allowed:
    let
      package = runCommand "${reason}-sample-1.0" { } "touch $out";
      meta = package.meta // {
        ${reason} = true;
      };
      deny = throw "Package ‘${reason}-sample-1.0’ is ${reason}, refusing to evaluate.";
    in
    package
    // {
      inherit meta;
      version = "1.0";
      drvPath = if allowed then package.drvPath else deny;
      outPath = if allowed then package.outPath else deny;
    };
in
{
  unfreeSample = refused "unfree" (config.allowUnfree or false);
  insecureSample = refused "insecure" false;
  brokenSample = refused "broken" (config.allowBroken or false);
  renamedSample = throw "'renamedSample' has been renamed to 'hello'";
  abortingSample = abort "this sample aborts";
  notAPackage = {
    nested = "text";
  };
  sampleSet = {
    inherit hello;
    recurseForDerivations = true;
  };
  unbuildableSample = runCommand "unbuildable-sample-1.0" { } "echo 'this sample never builds' >&2; exit 1";

  manyOutputsSample =
    let
      outputs = [
        "bin"
        "out"
        "dev"
        "man"
      ];
      package =
        runCommand "many-outputs-sample-1.0"
          {
            inherit outputs;
            meta = {
              mainProgram = "sample";
              outputsToInstall = [
                "bin"
                "man"
              ];
            };
          }
          ''
            mkdir -p $bin/bin $out/lib $dev/include $man/share/man/man1
            printf '#!/bin/sh\necho sample\n' > $bin/bin/sample
            chmod 755 $bin/bin/sample
          '';
    in
    package // { version = "1.0"; };
}
