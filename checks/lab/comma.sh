#!/bin/bash
# A stand-in for comma: finds the attribute that has a program in a small
# $database (lines "program attribute"), then runs it through nix, as comma does.
set -euo pipefail
: "${database:?}"

if [[ $# -eq 0 ]]; then
  echo "usage: , PROGRAM [ARGUMENT...]" >&2
  exit 2
fi
program=$1
shift
while read -r name attribute; do
  if [[ $name == "$program" ]]; then
    exec nix --extra-experimental-features 'nix-command flakes' shell "nixpkgs#$attribute" --command "$program" "$@"
  fi
done <"$database"
echo ", : no package has a program called $program" >&2
exit 1
