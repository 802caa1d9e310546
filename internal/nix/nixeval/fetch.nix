# Fetches what a locked flake reference names. Needs the flakes feature. Not
# getFlake: it runs what flake.nix says, which could read any file of the user.
{ ref }:
let
  tree = builtins.fetchTree (builtins.parseFlakeRef ref);
in
{
  path = tree.outPath;
  narHash = tree.narHash or "";
  rev = tree.rev or "";
  lastModified = tree.lastModified or 0;
}
