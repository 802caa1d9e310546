{
  description = "A stand-in for nixpkgs, made of Debian's programs: for tests without network";

  outputs = _: {
    lib = import ./lib.nix;
    legacyPackages.x86_64-linux = import ./. { system = "x86_64-linux"; };
  };
}
