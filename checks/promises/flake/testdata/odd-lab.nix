# ../odd.nix on the lab's packages, in the lab's home-manager.
{ lab, root }:
let
  nixpkgs = builtins.path {
    name = "source";
    path = lab;
  };
  packages = system: import nixpkgs { inherit system; };
  plain = packages "x86_64-linux";
  pkgs = plain // import ./examples.nix plain;
  self =
    (import (root + "/flake.nix")).outputs {
      inherit self;
      nixpkgs = {
        outPath = nixpkgs;
        inherit (pkgs) lib;
        legacyPackages.x86_64-linux = pkgs;
      };
      nix-index-database = lab + "/nix-index-database";
      home-manager.outPath = lab + "/home-manager";
    }
    // {
      outPath = toString root;
    };
in
import ./odd-homes.nix {
  inherit self pkgs;
  foreign = self.lib.mkClaudebox { pkgs = packages "aarch64-linux"; };
  home =
    configuration:
    import (lab + "/home-manager/modules") {
      inherit configuration pkgs;
      inherit (pkgs) lib;
    };
}
