# The files that claudebox itself needs, by the names that the manifest's
# reader gives them (internal/plan/resolve/manifest.go). A set of text: not for
# callPackage, which would add functions to it.
pkgs:
let
  inherit (pkgs) lib;
  prebuilt = import ./prebuilt.nix pkgs;
in
{
  bwrap = lib.getExe' (pkgs.callPackage ./bubblewrap.nix { }) "bwrap";
  env = lib.getExe' pkgs.coreutils "env";
  bash = lib.getExe' pkgs.bashInteractive "bash";
  git = lib.getExe' pkgs.git "git";
  nix = lib.getExe' (import ./inside.nix pkgs) "nix";
  cacert = "${pkgs.cacert}/etc/ssl/certs/ca-bundle.crt";
  terminfo = "${pkgs.callPackage ./terminfo.nix { }}/share/terminfo";
  loader = "${prebuilt.loader}";
  libs = "${prebuilt.libraries}/lib";
}
// lib.optionalAttrs (pkgs.glibcLocalesUtf8 or null != null) {
  # musl has none.
  locale = "${pkgs.glibcLocalesUtf8}/lib/locale/locale-archive";
}
