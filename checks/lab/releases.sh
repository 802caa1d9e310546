# Programs of other Debians, with which claudebox is tested as well as with the
# lab's own (trixie's): unpacked and never installed. Sourced by checks/setup.
# shellcheck shell=bash

# releases have Nix 2.8, pasta of 2023 and bwrap 0.8; and the newest of all.
releases=(bookworm sid)

# The tests start these Nix daemons, each with a store of its own, and let
# claudebox run this bwrap. Measurements have pasta beside claudebox's network.
release_programs=(nix-bin dash passt bubblewrap)

# clients are programs that the lab's nixpkgs does not have and that the network
# is tested with. Tests lay them into a sandbox where Debian has them.
clients_suite=trixie
client_programs=(openssh-client gh python3-requests python3-pip openjdk-21-jre-headless)

# get_releases unpacks what is not there yet, all at once. A release that cannot be
# had is left out, and the suite says so.
get_releases() {
  local name
  mkdir -p "$cache/releases"
  for name in "${releases[@]}"; do
    [[ -e $cache/releases/$name ]] || get_release "$name" "$name" "${release_programs[@]}" &
  done
  [[ -e $cache/releases/clients/usr/bin/gh ]] || get_release clients "$clients_suite" "${client_programs[@]}" &
  wait
  for name in "${releases[@]}" clients; do
    [[ -e $cache/releases/$name ]] || say "the programs of Debian for $cache/releases/$name cannot be had here"
  done
}

# get_release NAME SUITE PROGRAM...: the programs and what they need, unpacked at
# $cache/releases/NAME.
get_release() {
  local name=$1 suite=$2 apt=$cache/apt-$1 root=$cache/release-$1.new file
  shift 2
  say "fetching $* of Debian $suite"
  rm -rf "$apt" "$root"
  fetch_archive "$apt" "$suite" "$@"
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
  ln -s usr/{bin,sbin,lib,lib64} "$root/" # old packages have files in these
  for file in "$apt"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$file" |
      tar -x --keep-directory-symlink --no-same-owner --exclude ./usr/share --exclude ./var -C "$root"
  done
  rm -rf "$apt"
  move_programs "$root" "$cache/releases/$name"
  chmod -R a+rX "$root"
  rm -rf "$cache/releases/$name" # one with fewer programs
  mv "$root" "$cache/releases/$name"
}

# move_programs ROOT PLACE: what claudebox starts as it is goes to ROOT/moved, made
# to run by itself once ROOT lies at PLACE. The loader is the file itself: in
# lib64 there is a link that leads to this machine's.
move_programs() {
  local root=$1 libraries=$2/usr/lib/x86_64-linux-gnu program
  mkdir "$root/moved"
  for program in bwrap pasta pasta.avx2; do
    [[ -e $root/usr/bin/$program ]] || continue
    cp -L "$root/usr/bin/$program" "$root/moved/"
    patchelf --force-rpath --set-interpreter "$libraries/ld-linux-x86-64.so.2" --set-rpath "$libraries" "$root/moved/$program"
  done
}
