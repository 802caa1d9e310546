# What the lab needs of the machine: programs, users, a store, a daemon.
# Sourced by checks/setup; everything here is root's.
# shellcheck shell=bash

# programs prints what this machine has to have, and Debian's packages with it.
programs() {
  cat <<'END'
curl curl
gcc gcc
git git
jq jq
nix-store nix-bin
patchelf patchelf
setpriv util-linux
xz xz-utils
END
  [[ -z $trying ]] || return 0
  # The tests': git asks ssh-keygen whether a signature is good.
  cat <<'END'
bindfs bindfs
mandoc mandoc
shellcheck shellcheck
ssh-keygen openssh-client
strace strace
END
}

# install_programs gets from Debian what is missing, and nothing otherwise.
install_programs() {
  local apt_options=() missing=() program package
  while read -r program package; do
    command -v "$program" >/dev/null || missing+=("$package")
  done < <(programs)
  [[ -e /usr/include/stdlib.h ]] || missing+=(libc6-dev)
  [[ -e /etc/ssl/certs/ca-certificates.crt ]] || missing+=(ca-certificates)
  install_packages "${missing[@]}"
}

# install_npm is apart: Debian's is 350 packages, which take longer than all the
# rest, and nothing of the store waits for it. Without a sync of each of their
# files it is half as long.
install_npm() {
  local apt_options=(-o Dpkg::Options::=--force-unsafe-io)
  command -v npm >/dev/null || install_packages npm
}

# install_packages NAME...: with apt_options.
install_packages() {
  [[ $# -gt 0 ]] || return 0
  command -v apt-get >/dev/null || die "this machine has neither Nix nor Debian's apt" "install Nix"
  say "installing from Debian: $*"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update >&2
  # An interrupted set-up may have left packages half installed: what dpkg cannot
  # finish, apt can.
  dpkg --configure -a >/dev/null 2>&1 || apt-get -qq --yes --fix-broken install >/dev/null
  apt-get -qq --yes --no-install-recommends "${apt_options[@]}" install "$@" >/dev/null
}

# make_users: builders for the daemon, and somebody whom it does not trust. The
# builders are the lab's own: a daemon ends all that runs as one of its builders,
# so another daemon must not have the same.
make_users() {
  local i builder=claudebox-build
  getent group $builder >/dev/null || groupadd --system $builder
  getent group nix-users >/dev/null || groupadd --system nix-users
  for i in 1 2 3 4; do
    id "$builder$i" >/dev/null 2>&1 ||
      useradd --system --gid $builder --groups $builder --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$builder$i"
  done
  if ! id "$lab_user" >/dev/null 2>&1; then
    say "making user $lab_user"
    useradd --create-home --shell /bin/bash --groups nix-users "$lab_user"
  fi
}

# make_room: each change of claudebox puts 300 MB into the store, and tests that
# are killed leave their homes. A full disk turns every test red.
make_room() {
  local least=10 free home # GB
  [[ -e $cache/nix ]] || return 0 # on a new machine there is no store yet
  free=$(df --output=avail --block-size=1G /nix | tail -n1)
  [[ $free -lt $least ]] || return 0
  say "collecting garbage of the lab: $((free)) GB are free"
  "$cache/nix/bin/nix-collect-garbage" >/dev/null 2>&1
  home=$(getent passwd "$lab_user" | cut -d: -f6)
  find "$home" -mindepth 1 -maxdepth 1 -name 'cb-*' -mmin +1440 -exec rm -rf {} +
  find "$home/.cache/go-build" -type f -mmin +1440 -delete
}

# open_devices lets every user make tunnels and mount FUSE, as udev does wherever it
# runs (50-udev-default.rules: tun and fuse are 0666). Without tun, claudebox makes a
# veth pair. The kernel looks for CAP_NET_ADMIN over the network namespace that a
# tunnel is for, and for CAP_SYS_ADMIN over the mount namespace.
open_devices() {
  local device
  for device in /dev/net/tun /dev/fuse; do
    [[ -c $device && $(stat --format %a $device) != 666 ]] || continue
    say "letting every user open $device, as udev does"
    chmod 666 $device
  done
}

write_nix_conf() {
  mkdir -p "$cache/etc"
  replace "$cache/etc/nix.conf" <<'END'
# The lab's daemon. No substituter: each unreachable one costs a client seconds.
# No build sandbox: the first programs are made with this machine's own.
build-users-group = claudebox-build
builders =
sandbox = false
substituters =
trusted-users = root
max-jobs = auto
END
}

# write_sandboxed_conf: of a daemon that builds in a sandbox, as users have it. One
# that runs with another has to go.
write_sandboxed_conf() {
  local conf=$cache/etc-sandboxed/nix.conf before pid
  mkdir -p "${conf%/*}"
  before=$(cat "$conf" 2>/dev/null || true)
  replace "$conf" <<END
include $cache/etc/nix.conf
sandbox = true
sandbox-paths = /bin/sh=$(readlink -f "$cache/bash")/bin/bash
END
  [[ $before == "$(cat "$conf")" ]] || ! pid=$(lab_daemon daemon-sandboxed) || kill "$pid"
}

# daemon_answers [SOCKET]: there is a daemon, whoever's, and this user may talk to it.
daemon_answers() {
  local socket=${1:-$nix_socket}
  [[ -S $socket ]] &&
    timeout 10 nix --extra-experimental-features nix-command --store "unix://$socket" store ping >/dev/null 2>&1
}

# lab_daemon NAME prints the process id of the daemon that start_daemon has
# started, if it still runs.
lab_daemon() {
  local pid
  pid=$(cat "$cache/$1.pid" 2>/dev/null) && [[ $(readlink "/proc/$pid/exe") == /nix/store/*/bin/nix ]] && echo "$pid"
}

# start_daemon NAME SOCKET CONF runs the lab's own Nix, which is newer than the
# one Debian 12 has, with the folder of its configuration. Members of nix-users
# may reach it, as Debian has it. All have one store and one set of locks.
start_daemon() {
  local name=$1 socket=$2 conf=$3 nix pid
  nix=$(readlink -f "$cache/nix")
  if pid=$(lab_daemon "$name"); then
    [[ $(readlink "/proc/$pid/exe") == "$nix"/* ]] && daemon_answers "$socket" && return
    kill "$pid"
  fi
  say "starting the Nix daemon of $nix${name#daemon}"
  rm -f "$socket"
  install -d -m 750 -g nix-users "$(dirname "$socket")"
  # shellcheck disable=SC2016 # the inner shell's own pid
  NIX_CONF_DIR=$conf NIX_DAEMON_SOCKET_PATH=$socket setsid --fork sh -c 'echo $$ >"$1"; exec "$2" --daemon' \
    sh "$cache/$name.pid" "$nix/bin/nix-daemon" </dev/null >"$cache/$name.log" 2>&1 9>&-
  wait_for daemon_answers "$socket" || die "the Nix daemon does not answer: $(tail -n1 "$cache/$name.log")"
}

# wait_for WORDS...: until they succeed, ten seconds at most.
wait_for() {
  local i
  for ((i = 0; i < 100; i++)); do
    "$@" && return
    sleep 0.1
  done
  return 1
}

# mount_homes: homes of tests lie on a file system of their own where it can be mounted. They are thousands of small
# files that are soon removed. A disk may throw each away at once (discard), and an ext4 without a journal looks past
# all of the last five seconds for each new one: together a third of the time of all tests.
mount_homes() {
  local homes image=$cache/homes.img name pid
  homes=$(getent passwd "$lab_user" | cut -d: -f6)/homes
  if mountpoint --quiet "$homes"; then
    find "$homes" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} + # of tests that were killed
    return
  fi
  mkdir -p "$homes"
  rm -f "$image"
  if truncate --size 8G "$image" && mkfs.ext4 -q -F -m 0 "$image" && mount -o loop,nobarrier,data=writeback "$image" "$homes"; then
    say "homes of tests are on a file system of their own, at $homes"
    rmdir "$homes/lost+found"
    chown "$lab_user:" "$homes"
    # A daemon may have mounts of its own, without this one.
    for name in daemon daemon-sandboxed; do ! pid=$(lab_daemon "$name") || kill "$pid"; done
  else
    rm -f "$image"
    say "homes of tests are on this machine's own file system, which takes longer"
  fi
}
