# What programs built elsewhere (wheels, npm's binaries) expect of a system:
# a loader at the usual place and the usual libraries. The loader is nix-ld's,
# which reads NIX_LD (the folder's ld.so) and NIX_LD_LIBRARY_PATH (the folder).
pkgs:
let
  inherit (pkgs) lib stdenv;
in
{
  loader = "${pkgs.nix-ld}/libexec/nix-ld";

  libraries = pkgs.buildEnv {
    name = "claudebox-libraries";
    pathsToLink = [ "/lib" ];
    paths = map lib.getLib [
      stdenv.cc.cc
      pkgs.acl
      pkgs.attr
      pkgs.bzip2
      pkgs.curl
      pkgs.libsodium
      pkgs.libssh
      pkgs.libxml2
      pkgs.openssl
      pkgs.util-linux
      pkgs.xz
      pkgs.zlib
      pkgs.zstd
    ];
    postBuild = "ln -s ${stdenv.cc.bintools.dynamicLinker} $out/lib/ld.so";
  };
}
