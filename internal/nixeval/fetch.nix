# Fetches what a locked flake reference names. Needs the flakes feature.
{ ref }:
let
  tree = builtins.fetchTree ref;
in
{
  path = tree.outPath;
  narHash = tree.narHash or "";
  rev = tree.rev or "";
}
