# A package set with every kind of package that an evaluation may meet.
{
  system,
  config ? { },
  overlays ? [ ],
}:
let
  make =
    name: more:
    derivation (
      {
        inherit system name;
        builder = "/bin/sh";
        args = [
          "-c"
          "for o in $outputs; do eval echo made '>' \\$$o; done"
        ];
      }
      // removeAttrs more [ "meta" ]
    )
    // {
      meta = more.meta or { };
    };
  # As nixpkgs does it: the flags can be read, the paths refuse.
  refused =
    name: meta:
    let
      refuse = throw "Package ‘${name}’ refuses to evaluate.";
    in
    make name { inherit meta; }
    // {
      drvPath = refuse;
      outPath = refuse;
      out = refuse;
    };
in
rec {
  hello = make "hello-1.0" { meta.mainProgram = "hello"; };
  multi = make "multi-2.3" {
    outputs = [
      "out"
      "bin"
      "dev"
    ];
    meta.outputsToInstall = [
      "bin"
      "out"
    ];
  };
  nested.deep.tool = make "tool-0.1" { };
  # Changes with each second, so that its derivation cannot be there yet.
  written = make "written-${toString builtins.currentTime}" { };

  unfreepkg = refused "unfreepkg-1" { unfree = true; };
  insecurepkg = refused "insecurepkg-1" {
    insecure = true;
    knownVulnerabilities = [ "CVE-2020-1" ];
  };
  brokenpkg = refused "brokenpkg-1" { broken = true; };
  unsupportedpkg = refused "unsupportedpkg-1" { unsupported = true; };
  alias = throw "'alias' has been renamed to/replaced by 'hello'";
  aborting = abort "bug in a package";
  typeerror = make ("x" + 1) { };
  infinite = make infinite.name { };
  missingattr = (make "x" { }).nope;
  fn = x: x;
  number = 3;
}
