# What programs built elsewhere (wheels, npm's binaries) expect of a system:
# a loader at the usual place and the usual libraries. The loader is nix-ld's,
# which reads NIX_LD (the folder's ld.so) and NIX_LD_LIBRARY_PATH (the folder).
{
  lib,
  buildEnv,
  nix-ld,
  stdenv,
  acl,
  attr,
  bzip2,
  curl,
  libsodium,
  libssh,
  libxml2,
  openssl,
  util-linux,
  xz,
  zlib,
  zstd,
}:
{
  loader = "${nix-ld}/libexec/nix-ld";

  libraries = buildEnv {
    name = "claudebox-libraries";
    pathsToLink = [ "/lib" ];
    paths = map lib.getLib [
      stdenv.cc.cc
      acl
      attr
      bzip2
      curl
      libsodium
      libssh
      libxml2
      openssl
      util-linux
      xz
      zlib
      zstd
    ];
    postBuild = "ln -s ${stdenv.cc.bintools.dynamicLinker} $out/lib/ld.so";
  };
}
