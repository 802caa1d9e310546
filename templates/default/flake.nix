{
  description = "A project that brings its own claudebox, and a home that has it";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";
    # Where you have claudebox from: a checkout, or its address.
    claudebox.url = "path:/path/to/claudebox";
    claudebox.inputs.nixpkgs.follows = "nixpkgs";
    home-manager.url = "github:nix-community/home-manager";
    home-manager.inputs.nixpkgs.follows = "nixpkgs";
  };

  outputs =
    {
      claudebox,
      nixpkgs,
      home-manager,
      ...
    }:
    let
      system = "x86_64-linux";
      pkgs = nixpkgs.legacyPackages.${system};
    in
    {
      # `nix run` starts Claude Code with what this project needs.
      packages.${system}.default = claudebox.lib.mkClaudebox {
        inherit pkgs;
        defaultProfile = "project";
        profiles.project = {
          packages = [ pkgs.hello ];
          settings = {
            network = "inet";
            env.GREETING = "from the project";
          };
        };
      };

      # `nix run home-manager -- switch --flake .#alice`
      homeConfigurations.alice = home-manager.lib.homeManagerConfiguration {
        inherit pkgs;
        modules = [
          claudebox.homeModules.default
          {
            home = {
              username = "alice";
              homeDirectory = "/home/alice";
              stateVersion = "26.05";
            };
            programs.claudebox = {
              enable = true;
              profiles.default.packages = [ pkgs.hello ];
            };
          }
        ];
      };
    };
}
