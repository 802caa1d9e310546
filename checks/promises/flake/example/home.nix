{ pkgs, ... }:
{
  home = {
    username = "alice";
    homeDirectory = "/home/alice";
    stateVersion = "26.05";
  };

  programs.claudebox = {
    enable = true;
    alias = "claude";
    settings.confirm = "changed";
    extraPackages = [ pkgs.jq ];
    profiles.work = {
      packages = [ pkgs.hello ];
      settings.env.GREETING = "from the module";
    };
    # The same without a network, where the daemon is out of reach too.
    profiles.quiet.settings = {
      extends = "work";
      network = "none";
    };
    defaultProfile = "work";
  };
}
