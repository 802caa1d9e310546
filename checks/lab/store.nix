# Debian's programs as derivations. `debs` is what checks/setup found:
# name → { version, sha256 }.
{ system, debs }:
let
  contents = import ./debian.nix;
  claimed = builtins.concatLists (builtins.attrValues contents);

  # The file that checks/setup has put into the store. Its path follows from
  # name and hash alone, so on a machine that is set up nothing is built here.
  deb =
    name:
    derivation {
      name = "${name}.deb";
      inherit system;
      builder = "/bin/sh";
      args = [
        "-c"
        "echo >&2 '${name}.deb is not in the store: run checks/setup'; exit 1"
      ];
      outputHashMode = "flat";
      outputHashAlgo = "sha256";
      outputHash = debs.${name}.sha256;
    };

  # 2:1.27.4+dfsg-1~bpo13+1 → 1.27.4
  upstream = version: builtins.elemAt (builtins.match "([0-9]+:)?([^+~-]*).*" version) 1;

  isLibrary = name: builtins.match "(lib|zlib).*" name != null && !(builtins.elem name claimed);
in
rec {
  # All shared libraries and the loader, as one folder.
  libraries = derivation {
    name = "debian-libraries";
    inherit system;
    builder = "/bin/bash";
    args = [ ./libraries.sh ];
    debs = map deb (builtins.filter isLibrary (builtins.attrNames debs));
  };

  version = attr: upstream debs.${builtins.head contents.${attr}}.version;

  # The programs of one entry of debian.nix; `fixup` are shell words run last.
  relocate =
    attr: fixup:
    derivation {
      name = "${attr}-${version attr}";
      inherit system fixup;
      builder = "/bin/bash";
      args = [ ./relocate.sh ];
      debs = map deb contents.${attr};
      libs = libraries;
    };
}
