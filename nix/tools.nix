# The files that claudebox itself needs, by the names that the manifest's
# reader gives them (internal/plan/resolve/manifest.go).
{
  lib,
  bashInteractive,
  bubblewrap,
  cacert,
  callPackage,
  coreutils,
  git,
  glibcLocalesUtf8,
  nix,
  passt,
  writeText,
}:
let
  prebuilt = callPackage ./prebuilt.nix { };
in
{
  bwrap = lib.getExe' (callPackage ./bubblewrap.nix { inherit bubblewrap; }) "bwrap";
  pasta = lib.getExe' passt "pasta";
  env = lib.getExe' coreutils "env";
  bash = lib.getExe' bashInteractive "bash";
  git = lib.getExe' git "git";
  nix = lib.getExe' nix "nix";
  cacert = "${cacert}/etc/ssl/certs/ca-bundle.crt";
  locale = "${glibcLocalesUtf8}/lib/locale/locale-archive";
  terminfo = "${callPackage ./terminfo.nix { }}/share/terminfo";
  empty = "${writeText "empty" ""}";
  loader = "${prebuilt.loader}";
  libs = "${prebuilt.libraries}/lib";
}
