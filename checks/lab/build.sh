#!/usr/bin/env bash
# usage: build.sh LAB ATTRIBUTE
# The unprivileged part of checks/build: runs in a copy of the repository.
set -euo pipefail

lab=$1 attribute=$2
cd "$(dirname "$0")/../.."

nix() { command nix --extra-experimental-features 'nix-command flakes' "$@"; }

# The modules that vendorHash names are not fetched but put into the store from
# what Go has here: if the hash is stale, the build says so.
modules=$(mktemp -d)
trap 'rm -rf "$modules"' EXIT
checks/vendor "$modules/go-modules"
nix-store --add-fixed --recursive sha256 "$modules/go-modules" >/dev/null

# Nix tells at length which inputs are replaced: shown only when it fails.
log=$modules/log
nix build --no-write-lock-file --no-warn-dirty --print-out-paths --out-link "$HOME/result-$attribute" \
  --override-input nixpkgs "path:$lab/nixpkgs" \
  --override-input nix-index-database "path:$lab/nixpkgs/nix-index-database" \
  --override-input home-manager "path:$lab/nixpkgs/home-manager" \
  "path:$PWD#$attribute" 2>"$log" || { cat "$log" >&2; exit 1; }
