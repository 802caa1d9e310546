{
  description = "A stand-in for home-manager: nothing yet evaluates our module against it";

  inputs.nixpkgs.url = "nixpkgs";

  outputs = _: { };
}
