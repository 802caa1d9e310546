# The homes of ../odd.nix, and what is said of those that are wrong; and homes of
# what the documents show.
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
  activate =
    file: module:
    (home {
      _file = file;
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
          _file = file;
          imports = [ module ];
        }
      ];
    }).activationPackage;
in
rec {
  said = lib.mapAttrs (_: it: removeAttrs it [ "config" ]) odd;
  homes = lib.mapAttrs (_: it: activate ../odd.nix it.config) odd;
  paths = map (name: homes.${name}.drvPath);

  # Files that hold a function of our flake to a module.
  shown = map (file: (activate file (import file { claudebox = self; })).drvPath);
}
