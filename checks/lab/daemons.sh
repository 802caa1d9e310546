# Other versions of Nix, whose daemons the client is tested against: Debian's
# packages, unpacked and never installed. The tests start them, each with a store
# of its own. Sourced by checks/setup.
# shellcheck shell=bash

# daemon_releases have Nix 2.8 and, at the time of writing, 2.34. The lab's own
# daemon is trixie's 2.26.
daemon_releases=(bookworm sid)

# get_daemons unpacks what is not there yet, all at once. A release that cannot be
# had is left out, and the suite says so.
get_daemons() {
  local release
  mkdir -p "$cache/daemons"
  for release in "${daemon_releases[@]}"; do
    [[ -e $cache/daemons/$release ]] || get_daemon "$release" &
  done
  wait
  for release in "${daemon_releases[@]}"; do
    [[ -e $cache/daemons/$release ]] || say "Nix of Debian $release cannot be had here"
  done
}

get_daemon() {
  local apt=$cache/apt-$1 root=$cache/daemon-$1.new file
  say "fetching Nix of Debian $1"
  rm -rf "$apt" "$root"
  fetch_archive "$apt" "$1" nix-bin dash
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
  ln -s usr/{bin,sbin,lib,lib64} "$root/" # old packages have files in these
  for file in "$apt"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$file" |
      tar -x --keep-directory-symlink --no-same-owner --exclude ./usr/share --exclude ./var -C "$root"
  done
  rm -rf "$apt"
  chmod -R a+rX "$root"
  mv "$root" "$cache/daemons/$1"
}
