# Our flake with real inputs.
{
  inputs, # as inputs.nix has them
  root, # our flake
}:
let
  self = (import (root + "/flake.nix")).outputs (inputs // { inherit self; }) // {
    outPath = toString root;
    _type = "flake";
  };
in
self
