#!/bin/bash
# nixpkgs' installManPage: each file by the section that its name ends in.
set -euo pipefail
: "${out:?}"

for page in "$@"; do
  folder=$out/share/man/man${page##*.}
  mkdir -p "$folder"
  cp "$page" "$folder/"
done
