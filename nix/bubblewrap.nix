# bubblewrap 0.12 or later. Before it, a mount point could be made through a
# symlink that a sandboxed program had planted (CVE-2026-87766). Goes away once
# the oldest nixpkgs we care for has it.
{
  lib,
  bubblewrap,
  fetchurl,
}:
if lib.versionAtLeast bubblewrap.version "0.12.0" then
  bubblewrap
else
  bubblewrap.overrideAttrs (
    final: _: {
      version = "0.12.0";
      src = fetchurl {
        url = "https://github.com/containers/bubblewrap/releases/download/v${final.version}/bubblewrap-${final.version}.tar.xz";
        hash = "sha256-l2DQBzY+Orunx0dImRD5+C2fylO6O9MoLjlvo8l6MxQ=";
      };
    }
  )
