# Where the lab keeps its things, and the few words every script of checks/
# needs. Sourced, never run.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
lab_user=claudebox-lab
nix_socket=/nix/var/nix/daemon-socket/socket

# The lab is root's, for all to read. Others keep what is theirs at home.
lab=/var/cache/claudebox-lab
if [[ $(id -u) == 0 ]]; then
  cache=$lab
else
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/claudebox-lab
fi

sandboxed_socket=$lab/sandboxed/socket # of a daemon that builds in a sandbox

say() { printf 'checks: %s\n' "$*" >&2; }
die() {
  printf 'checks: %s\n' "$1" >&2
  [[ $# -lt 2 ]] || printf 'checks: remedy: %s\n' "$2" >&2
  exit 1
}

# replace FILE: FILE becomes what stdin holds, whole or not at all.
replace() {
  cat >"$1.new.$$"
  mv "$1.new.$$" "$1"
}

# go_folder prints where a Go is that can build this: this machine's own when it
# is new enough, else the lab's.
go_folder() {
  local go have needs
  go=$(command -v go || true)
  have=$([[ -z $go ]] || GOTOOLCHAIN=local "$go" env GOVERSION | sed -n 's/^go\([0-9.]*\).*/\1/p')
  needs=$(sed -n 's/^go //p' "$repo/go.mod")
  if [[ -n $have && $(printf '%s\n' "$needs" "$have" | sort --version-sort | head -n 1) == "$needs" ]]; then
    dirname "$(readlink -f "$go")"
  else
    echo "$cache/go/bin"
  fi
}

# copy_tree TO: the repository's files, tracked or new, for a user who may not be
# able to read this checkout (and git refuses to look into other people's).
copy_tree() {
  rm -rf "$1.new"
  mkdir -p "$1.new"
  git -c safe.directory="$repo" -C "$repo" ls-files -z --cached --others --exclude-standard |
    tar -C "$repo" --create --null --files-from - --ignore-failed-read --warning=no-failed-read |
    tar -C "$1.new" --extract
  rm -rf "$1"
  mv "$1.new" "$1"
  [[ $(id -u) != 0 ]] || chown -R "$lab_user:" "$1"
}
