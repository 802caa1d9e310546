# The homes of ../odd.nix, and what is said of those that are wrong.
{
  self, # our flake
  pkgs,
  foreign,
  home, # a module → a home
}:
let
  inherit (pkgs) lib;
  odd = import ../odd.nix {
    inherit lib pkgs foreign;
    claudebox = self.lib.mkClaudebox {
      inherit pkgs;
      profiles.packaged.settings.network = "none";
    };
    module = self.homeModules.default;
  };
in
rec {
  said = lib.mapAttrs (_: it: removeAttrs it [ "config" ]) odd;
  homes = lib.mapAttrs (
    _: it:
    (home {
      _file = ../odd.nix;
      imports = [
        self.homeModules.default
        {
          home = {
            username = "alice";
            homeDirectory = "/home/alice";
            stateVersion = "26.05";
          };
          manual.manpages.enable = false;
        }
        {
          _file = ../odd.nix;
          imports = [ it.config ];
        }
      ];
    }).activationPackage
  ) odd;
  paths = map (name: homes.${name}.drvPath);
}
