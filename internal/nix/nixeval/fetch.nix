# Fetches what a locked flake reference names. Needs the flakes feature; not
# fetchTree, which Nix 2.8 does not give references in this form.
{ ref }:
let
  flake = builtins.getFlake ref;
in
{
  path = flake.outPath;
  narHash = flake.narHash or "";
  rev = flake.rev or "";
  lastModified = flake.lastModified or 0;
}
