# comma with the small database of the stand-in.
{ pkgs }:
{
  comma-with-db = pkgs.comma;
}
