# checks/properties.nix of the stand-in.
{
  lab, # the lab's nixpkgs, put together by checks/setup
}:
import ../properties.nix { pkgs = import lab { system = "x86_64-linux"; }; }
