# Fetches what a locked flake reference names. Needs the flakes feature. Not
# getFlake: it runs what flake.nix says, which could read any file of the user.
{ ref }:
let
  # Nix before 2.18 has no parseFlakeRef; its fetchTree takes addresses with "://" as they are.
  forge = builtins.match "([a-z]+):([^/?]+)/([^/?]+)/([0-9a-f]+)" ref;
  path = builtins.match "path:([^?]+)" ref;
  part = builtins.elemAt forge;
  parsed =
    if forge != null then
      {
        type = part 0;
        owner = part 1;
        repo = part 2;
        rev = part 3;
      }
    else if path != null then
      {
        type = "path";
        path = builtins.head path;
      }
    else
      ref;
  tree = builtins.fetchTree (if builtins ? parseFlakeRef then builtins.parseFlakeRef ref else parsed);
in
{
  path = tree.outPath;
  narHash = tree.narHash or "";
  rev = tree.rev or "";
  lastModified = tree.lastModified or 0;
}
