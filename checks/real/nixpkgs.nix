# In nixpkgs' place: a cut of it with the real stdenv, callPackage and builders,
# what the cut lacks, and nixpkgs' own lib above. Only above: below, the cut's
# platforms would not compare equal. checks/real/prepare puts this beside `lib`,
# `nixos` and the cut.
arguments:
let
  lib = import ./lib;

  # What the cut lacks and we name. It can be evaluated, and overridden as
  # nixpkgs' own can.
  stubs =
    final: _:
    let
      stub =
        name: more:
        final.callPackage (
          { stdenv }:
          stdenv.mkDerivation (
            {
              pname = name;
              version = "1.0";
              dontUnpack = true;
              meta.mainProgram = name;
            }
            // more
          )
        ) { };
    in
    lib.genAttrs [
      "awscli2"
      "deadnix"
      "fd"
      "foot"
      "ghostty"
      "gofumpt"
      "gopls"
      "hello"
      "kubectl"
      "nix-index-unwrapped"
      "nix-ld"
      "nixfmt"
      "sd-switch"
      "shellcheck"
      "statix"
      "tree"
    ] (name: stub name { })
    // {
      path = ./.;
      overlays = arguments.overlays or [ ];
      comma = final.callPackage (
        { stdenv, nix-index-unwrapped }:
        stdenv.mkDerivation {
          pname = "comma";
          version = "1.0";
          buildInputs = [ nix-index-unwrapped ];
        }
      ) { };
      kitty = stub "kitty" {
        outputs = [
          "out"
          "terminfo"
        ];
      };
      claude-code = stub "claude-code" {
        meta = {
          mainProgram = "claude";
          license = lib.licenses.unfree;
        };
      };
      treefmt = stub "treefmt" { } // {
        withConfig = { settings, runtimeInputs ? [ ] }: stub "treefmt-with-config" { inherit runtimeInputs; settings = builtins.toJSON settings; };
      };
      mkShell = { packages }: stub "nix-shell" { nativeBuildInputs = packages; };
      testers = {
        runNixOSTest =
          test:
          stub "vm-test-${test.name}" {
            machines = builtins.toJSON (
              lib.mapAttrs (
                _: node:
                let
                  inherit
                    (import ./nixos/lib/eval-config.nix {
                      modules = [ node ];
                      pkgs = final // {
                        inherit lib;
                      };
                    })
                    config
                    ;
                in
                {
                  inherit (config) assertions warnings;
                  packages = config.environment.systemPackages;
                  files = lib.mapAttrs (_: file: "${file.source}") config.environment.etc;
                }
              ) test.nodes
            );
          };
      };
      # Only JSON is ever made of; the others are named by options.
      formats =
        lib.genAttrs
          [
            "configObj"
            "gitIni"
            "hocon"
            "ini"
            "iniWithGlobalSection"
            "javaProperties"
            "json"
            "keyValue"
            "libconfig"
            "lua"
            "plist"
            "toml"
            "xml"
            "yaml"
          ]
          (
            _: _: {
              type = lib.types.json;
              lib.types.atom = lib.types.json;
              generate = name: value: final.writeText name (builtins.toJSON value);
            }
          );
    };
in
import ./cut (
  arguments
  // {
    overlays = [ stubs ] ++ arguments.overlays or [ ];
    modules = [ { _module.freeformType = lib.types.attrsOf lib.types.raw; } ];
  }
)
// {
  inherit lib;
}
