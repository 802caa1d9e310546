{
  description = "A stand-in for home-manager, with as much of it as our module touches";

  inputs.nixpkgs.url = "nixpkgs";

  outputs = _: {
    lib.homeManagerConfiguration =
      { pkgs, modules }:
      import ./modules {
        inherit pkgs;
        inherit (pkgs) lib;
        configuration.imports = modules;
      };
  };
}
