# checks/promises/modules/properties.nix of the stand-in.
{
  lab, # the lab's nixpkgs, put together by checks/setup
}:
import ../promises/modules/properties.nix { pkgs = import lab { system = "x86_64-linux"; }; }
