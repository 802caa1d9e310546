# Every output of our flake, evaluated with real inputs: name → what it comes to,
# derivations forced. What belongs to no system (modules, overlays, lib) stands
# here as it is used.
{
  folder, # as checks/real/prepare made it
  root, # our flake
  system,
}:
let
  inputs = import ./inputs.nix folder;
  inherit (inputs.nixpkgs) lib;
  self = import ./self.nix { inherit inputs root; };
  pkgs = inputs.nixpkgs.legacyPackages.${system};

  below = prefix: lib.mapAttrs' (name: value: lib.nameValuePair "${prefix}.${name}" value.drvPath);

  inherit (self.lib) mkClaudebox;
  unfree = import inputs.nixpkgs.outPath {
    inherit system;
    config.allowUnfreePredicate = package: lib.getName package == "claude-code";
    inherit (pkgs) overlays;
  };

  # Other sets of packages, as a user may have them.
  other = arguments: import inputs.nixpkgs.outPath ({ inherit system; } // arguments);

  profiles = {
    work = {
      packages = [
        pkgs.hello
        "openssl^dev,out"
        "python3Packages.setuptools"
      ];
      settings.network = "inet";
    };
    quiet.settings = {
      extends = "work";
      network = "none";
    };
  };
  settings = {
    enable = true;
    inherit profiles;
    defaultProfile = "work";
    extraPackages = [ pkgs.jq ];
    settings.confirm = "changed";
  };

  home =
    module:
    inputs.home-manager.lib.homeManagerConfiguration {
      inherit pkgs;
      modules = [
        self.homeModules.default
        {
          home = {
            username = "alice";
            homeDirectory = "/home/alice";
            stateVersion = "26.05";
          };
          manual.manpages.enable = false;
        }
        module
      ];
    };
  machine = import "${inputs.nixpkgs}/nixos/lib/eval-config.nix" {
    inherit pkgs;
    modules = [
      self.nixosModules.default
      {
        system.stateVersion = "26.05";
        programs.claudebox = settings;
      }
    ];
  };
in
below "packages" self.packages.${system}
// below "checks" self.checks.${system}
// below "devShells" self.devShells.${system}
// {
  apps = map (app: app.program) (lib.attrValues self.apps.${system});
  formatter = self.formatter.${system}.drvPath;
  overlays = (pkgs.extend self.overlays.default).claudebox.drvPath;
  "lib.mkClaudebox" = (mkClaudebox { inherit pkgs; }).drvPath;
  "lib.mkClaudebox, with profiles" =
    (mkClaudebox {
      inherit pkgs profiles;
      defaultProfile = "work";
    }).drvPath;
  "lib.mkClaudebox, with an agent" =
    (mkClaudebox {
      pkgs = unfree;
      agentPackage = unfree.claude-code;
    }).drvPath;
  "lib.mkClaudebox, overridden" = ((mkClaudebox { inherit pkgs; }).override { inherit profiles; }).drvPath;
  "machine-test" = self.legacyPackages.${system}.machine-test.drvPath;
  "default.nix" = (import root { inherit pkgs; }).drvPath;
  "default.nix, with a database" =
    (import root {
      inherit pkgs;
      nix-index-database = inputs.nix-index-database.outPath;
    }).drvPath;
  "shell.nix" = (import (root + "/shell.nix") { inherit pkgs; }).drvPath;
  "another Nix in nix's place" =
    (mkClaudebox {
      pkgs = other {
        overlays = [
          (_: prev: { nix = prev.hello; })
        ];
      };
    }).drvPath;
  "no nix" =
    (mkClaudebox {
      pkgs = other {
        overlays = [
          (_: _: { nix = null; })
        ];
      };
    }).drvPath;
  homeModules = (home { programs.claudebox = settings; }).activationPackage.drvPath;
  nixosModules =
    assert lib.all (it: it.assertion) machine.config.assertions;
    map (package: package.drvPath) machine.config.environment.systemPackages
    ++ lib.mapAttrsToList (_: file: "${file.source}") machine.config.environment.etc;
}
