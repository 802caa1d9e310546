{
  description = "Claude Code at full permissions in a bubblewrap sandbox, packages pinned by Nix";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";
    nix-index-database = {
      url = "github:nix-community/nix-index-database";
      inputs.nixpkgs.follows = "nixpkgs";
    };
  };

  outputs =
    inputs@{ self, nixpkgs, ... }:
    let
      eachSystem =
        f:
        nixpkgs.lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (
          system: f nixpkgs.legacyPackages.${system}
        );
    in
    {
      lib.mkClaudebox = import ./nix inputs;

      packages = eachSystem (pkgs: rec {
        claudebox = self.lib.mkClaudebox {
          inherit pkgs;
          flake = self.outPath;
        };
        claudebox-with-claude-code = self.lib.mkClaudebox {
          inherit pkgs;
          agentPackage = import ./nix/claude-code.nix { inherit nixpkgs pkgs; };
        };
        default = claudebox;
      });

      apps = eachSystem (
        pkgs:
        let
          claudebox = {
            type = "app";
            program = pkgs.lib.getExe self.packages.${pkgs.stdenv.hostPlatform.system}.claudebox;
            meta.description = "Claude Code in a sandbox";
          };
        in
        {
          inherit claudebox;
          default = claudebox;
        }
      );

      overlays.default = final: _: { claudebox = self.lib.mkClaudebox { pkgs = final; }; };

      # Those that need home-manager are a flake of their own (checks/homes), so that nobody has it in a lock file.
      checks = eachSystem (pkgs: import ./nix/checks.nix { inherit self pkgs; });
      # It needs KVM: `nix build .#machine-test`.
      legacyPackages = eachSystem (pkgs: {
        machine-test = import ./nix/machine-test.nix { inherit self pkgs; };
      });
      devShells = eachSystem (pkgs: {
        default = pkgs.callPackage ./nix/shell.nix { };
      });
      formatter = eachSystem (pkgs: pkgs.callPackage ./nix/formatter.nix { });

      homeModules = rec {
        claudebox = {
          _file = ./modules/home-manager.nix;
          key = "claudebox#homeModules.claudebox";
          _class = "homeManager";
          imports = [ (import ./modules/home-manager.nix self) ];
        };
        default = claudebox;
      };
      nixosModules = rec {
        claudebox = {
          _file = ./modules/nixos.nix;
          key = "claudebox#nixosModules.claudebox";
          _class = "nixos";
          imports = [ (import ./modules/nixos.nix self) ];
        };
        default = claudebox;
      };

      templates.default = {
        path = ./templates/default;
        description = "A claudebox of a project's own, for `nix run`, and a home that has it";
      };
    };
}
