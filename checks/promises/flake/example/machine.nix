{ pkgs, ... }:
{
  system.stateVersion = "26.05";
  users.users.alice.isNormalUser = true;

  programs.claudebox = {
    enable = true;
    profiles.default.packages = [ pkgs.hello ];
  };
}
