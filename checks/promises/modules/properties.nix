# What our Nix code relies on, or could trip over, in nixpkgs' callPackage,
# makeOverridable, mkDerivation and lib: name → value, as nixpkgs itself has it
# in properties.json. The lab's stand-in has to give the same.
{ pkgs }:
let
  inherit (pkgs) lib runCommand;
  inherit (builtins)
    attrNames
    deepSeq
    isFunction
    map
    tryEval
    typeOf
    ;

  # null where asking for the value is refused.
  asked =
    value:
    let
      it = tryEval (deepSeq value value);
    in
    if it.success then it.value else null;

  plain = runCommand "plain-1.0" { } "touch $out";
  sample = runCommand "sample-1.0" {
    pname = "sample";
    version = "1.0";
    env.NUMBER = "5";
    outputs = [
      "out"
      "bin"
      "dev"
    ];
    meta = {
      mainProgram = "it";
      description = "a sample";
    };
    passthru.more = 1;
  } "touch $out $bin $dev";
  with' = meta: runCommand "refused-1.0" { inherit meta; } "touch $out";

  sameBuild = a: b: a.drvPath == b.drvPath;

  called = pkgs.callPackage ({ runCommand, number ? 1 }: runCommand "called-${toString number}" { passthru = { inherit number; }; } "") { };

  overridable = lib.makeOverridable (
    { a, b ? 2 }:
    {
      sum = a + b;
    }
  ) { a = 1; };
in
{
  # callPackage
  "a set has functions added to it" = attrNames (pkgs.callPackage (_: { a = 1; }) { });
  "what is added is callable, and no function" =
    map typeOf [
      (pkgs.callPackage ({ }: { }) { }).override
      overridable.override
    ]
    ++ map isFunction [ (pkgs.callPackage ({ }: { }) { }).override ];
  "a function stays one, with override" =
    let
      f = pkgs.callPackage ({ lib }: n: lib.toList (n + 1)) { };
    in
    [
      (f 1)
      (typeOf f)
      (f ? override)
    ];
  "anything else comes as it is" = pkgs.callPackage ({ lib }: lib.concatStrings [ "a" "b" ]) { };
  "arguments come before packages" = (pkgs.callPackage ({ hello }: { inherit hello; }) { hello = 5; }).hello;
  "a default serves for what no package is called" = (pkgs.callPackage ({ noSuchPackage ? 7 }: { it = noSuchPackage; }) { }).it;
  "a package can be overridden by a set" = (called.override { number = 2; }).name;
  "a package can be overridden by a function" = (called.override (old: { number = (old.number or 5) + 1; })).name;
  "a package can be overridden twice" = ((called.override { number = 2; }).override { number = 3; }).number;
  "a package keeps override after overrideAttrs" =
    ((called.overrideAttrs { version = "9"; }).override { number = 4; }).number;
  "overrideAttrs is kept by override" =
    ((called.overrideAttrs { ADDED = "yes"; }).override { number = 4; }).ADDED or null;

  # makeOverridable
  "overriding keeps the other arguments" = (overridable.override { b = 5; }).sum;
  "overriding by a function sees the arguments" = (overridable.override (old: { a = old.a * 10; })).sum;
  "names of an overridable set" = attrNames overridable;
  "override names the arguments" = lib.functionArgs overridable.override;
  "makeOverridable of a derivation keeps overrideAttrs" = attrNames (
    builtins.intersectAttrs {
      override = 1;
      overrideAttrs = 1;
      overrideDerivation = 1;
    } (lib.makeOverridable ({ }: plain) { })
  );

  # mkDerivation, by way of a builder
  "attributes of a derivation" = map (name: sample.${name} or null) [
    "type"
    "name"
    "pname"
    "version"
    "outputs"
    "outputName"
    "NUMBER"
    "more"
    "passthru"
    "system"
  ];
  "meta" = [
    sample.meta.mainProgram
    sample.meta.description
    sample.meta.name
    sample.meta.available
    sample.meta.outputsToInstall
    plain.meta.outputsToInstall
  ];
  "meta and passthru are no part of a build" = [
    (sample.drvAttrs ? meta)
    (sample.drvAttrs ? passthru)
    (sameBuild sample (sample.overrideAttrs (old: { meta = old.meta // { description = "another"; }; })))
    (sameBuild sample (sample.overrideAttrs { passthru.more = 2; }))
    (sameBuild sample (sample.overrideAttrs { env.NUMBER = "6"; }))
  ];
  "an output" = [
    sample.dev.outputName
    sample.dev.outputSpecified
    (sample.outputSpecified or false)
    sample.dev.version
    sample.dev.meta.mainProgram
    (sample.outPath == sample.out.outPath)
    (sample.dev.outPath == sample.outPath)
    (sample.dev.drvPath == sample.drvPath)
  ];
  "overrideAttrs" = map (it: it.version) [
    (sample.overrideAttrs { version = "2"; })
    (sample.overrideAttrs (old: { version = old.version + ".1"; }))
    (sample.overrideAttrs (final: old: { version = old.version + toString (lib.length final.outputs); }))
    ((sample.overrideAttrs { version = "2"; }).overrideAttrs (old: { version = old.version + ".1"; }))
  ];
  "overrideAttrs of passthru" = (sample.overrideAttrs (old: { passthru = old.passthru // { less = 0; }; })).less;
  "a platform that is not named is refused" = asked (with' { platforms = [ "riscv64-linux" ]; }).outPath;
  "a platform that is named is not" = asked (with' { platforms = [ "x86_64-linux" ]; }).name;
  "what is broken is refused" = asked (with' { broken = true; }).drvPath;
  "what is unfree can be allowed by name" =
    let
      allowing =
        name:
        (import pkgs.path {
          system = "x86_64-linux";
          config.allowUnfreePredicate = package: lib.getName package == name;
        }).claude-code.outPath;
    in
    [
      (typeOf (allowing "claude-code"))
      (asked (allowing "hello"))
      (asked pkgs.claude-code.outPath)
    ];
  "what is unfree is refused" = asked (with' { license.free = false; }).drvPath;
  "what is refused says so in meta" = (with' { broken = true; }).meta.available;
  "the builders give packages" =
    map
      (it: [
        (lib.isDerivation it)
        (it ? overrideAttrs)
        (it.meta ? outputsToInstall)
        it.name
      ])
      [
        (pkgs.writeText "text" "words")
        (pkgs.symlinkJoin {
          name = "joined";
          paths = [ plain ];
        })
        (pkgs.buildEnv {
          name = "environment";
          paths = [ plain ];
          pathsToLink = [ "/lib" ];
        })
      ];
  "the package of a program built with Go" =
    let
      package = pkgs.callPackage ../../../nix/package.nix { };
      other = package.overrideAttrs (old: {
        pname = old.pname + "-more";
        inherit (package) goModules;
        doCheck = true;
      });
    in
    [
      (lib.isDerivation package.goModules)
      (package ? override)
      (sameBuild package (package.override { }))
      (sameBuild package other)
      (sameBuild other.goModules package.goModules)
      other.pname
      (builtins.substring 0 3 package.go.version == "1.2")
    ];

  # lib
  "getExe" = map (it: it == null || lib.hasPrefix builtins.storeDir it) [ (lib.getExe sample) ];
  "getExe takes the output with programs" = lib.getExe sample == "${sample.bin}/bin/it";
  "getExe' wants the name of a program" = asked (lib.getExe' sample "bin/it");
  "getOutput" = map (output: (lib.getOutput output sample).outputName) [
    "dev"
    "bin"
    "man"
  ];
  "getOutput of an output" = (lib.getOutput "bin" sample.dev).outputName;
  "getLib" = (lib.getLib sample).outputName;
  "getName" = map lib.getName [
    sample
    "sample-1.0"
    plain
  ];
  "isDerivation" = map lib.isDerivation [
    sample
    { }
    "text"
    null
    [ ]
  ];
  "splitString" = map (lib.splitString ".") [
    ""
    "a"
    "a..b"
    ".a."
  ];
  "attrByPath" = map (path: lib.attrByPath path 0 { a.b = 1; a.c = "text"; }) [
    [ ]
    [ "a" "b" ]
    [ "a" "c" "d" ]
    [ "b" ]
  ];
  "removeSuffix" = map (lib.removeSuffix "\n") [
    ""
    "\n"
    "a\n\n"
    "a"
  ];
  "hasPrefix" = map (lib.hasPrefix "ab") [
    ""
    "ab"
    "abc"
    "b"
  ];
  "zipAttrs" = lib.zipAttrs [
    { a = 1; }
    {
      a = 2;
      b = 3;
    }
  ];
  "concatMapAttrs: the later wins" =
    lib.concatMapAttrs
      (name: value: {
        ${name} = value;
        same = value;
      })
      {
        a = 1;
        b = 2;
      };
  "getAttrs wants what is there" = asked (lib.mapAttrs' lib.nameValuePair (lib.getAttrs [ "a" ] { a = 1; }));
  "lists" = [
    (lib.toList null)
    (lib.toList [ 1 ])
    (lib.optional false 1)
    (lib.optionals true [ 1 ])
    (lib.findFirst (it: it > 1) null [ 1 2 3 ])
    (lib.findFirst (it: it > 9) null [ 1 2 3 ])
    (lib.last [ 1 2 ])
    (lib.unique [ 1 2 1 ])
    (lib.imap1 (n: it: n * it) [ 5 5 ])
  ];
  "versionAtLeast" = map (lib.versionAtLeast "0.12.0") [
    "0.12.0"
    "0.11.9"
    "0.12.1"
    "0.12"
  ];
  "a file set wants what is there" = asked "${lib.fileset.toSource {
    root = ./.;
    fileset = lib.fileset.unions [ ./no-such-file ];
  }}";
  "a module's options, as a manual has them" = import ../../../modules/reference.nix { inherit lib; } == builtins.readFile ../../../docs/options.md;

  # the set of packages
  "the set says where it is from" = typeOf (toString pkgs.path);
  "the set can be extended" = (pkgs.extend (_: old: { hello = old.hello // { mine = true; }; })).hello.mine;
  "a platform" = [
    pkgs.stdenv.hostPlatform.system
    pkgs.stdenv.hostPlatform.isLinux
    (pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform)
  ];
}
