# A project whose packages are made by nixpkgs' own stdenv, with the lab's
# programs. ./core is what the test copies of the real thing.
{
  outputs =
    { self, nixpkgs }:
    let
      pkgs = nixpkgs.legacyPackages.x86_64-linux;
      platform = (import ./core/lib.nix).systems.elaborate "x86_64-linux";
      stdenv = import ./core/stdenv/generic {
        config = {
          checkMeta = false;
          configurePlatformsByDefault = false;
          contentAddressedByDefault = false;
          enableParallelBuildingByDefault = false;
          inHydra = false;
          showDerivationWarnings = [ ];
          strictDepsByDefault = false;
          structuredAttrsByDefault = false;
        };
        cc = null;
        shell = "${pkgs.bash}/bin/bash";
        initialPath = with pkgs; [
          bash
          coreutils
          diffutils
          findutils
          gawk
          gnugrep
          gnused
          gnutar
          gzip
        ];
        fetchurlBoot = null;
        buildPlatform = platform;
        hostPlatform = platform;
        targetPlatform = platform;
      };
      greet = stdenv.mkDerivation {
        pname = "greet";
        version = "1";
        src = ./src;
        nativeBuildInputs = [ pkgs.hello ];
        buildPhase = "hello >greeting";
        installPhase = ''
          mkdir -p $out/bin
          printf '#!/bin/sh\necho "%s"\n' "$(cat greeting)" >$out/bin/greet
          chmod +x $out/bin/greet
        '';
        meta.mainProgram = "greet";
      };
    in
    {
      packages.x86_64-linux.default = greet;
      checks.x86_64-linux.greet = greet;
      devShells.x86_64-linux.default = stdenv.mkDerivation {
        name = "shell";
        nativeBuildInputs = [
          pkgs.hello
          greet
        ];
        WORD = "from the shell";
      };
    };
}
