{
  description = "A project that brings its own claudebox, and two machines that install it";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";
    # In a flake of your own: where claudebox comes from.
    claudebox.url = "path:../../../..";
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
      # `nix run` starts the agent with what this project needs.
      packages.${system}.default = claudebox.lib.mkClaudebox {
        inherit pkgs;
        defaultProfile = "shop";
        profiles.shop = {
          packages = [ pkgs.hello ];
          settings.env.SHOP = "open";
        };
      };

      homeConfigurations.alice = home-manager.lib.homeManagerConfiguration {
        inherit pkgs;
        modules = [
          claudebox.homeModules.default
          ./home.nix
        ];
      };

      nixosConfigurations.machine = nixpkgs.lib.nixosSystem {
        inherit system;
        modules = [
          claudebox.nixosModules.default
          ./machine.nix
        ];
      };
    };
}
