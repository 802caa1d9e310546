#!/bin/bash
# The form of nixpkgs' installShellCompletion that package.nix uses:
# --cmd NAME --bash FILE --fish FILE --zsh FILE.
set -euo pipefail
: "${out:?}"

put() {
  mkdir -p "$(dirname "$out/share/$2")"
  cat "$1" >"$out/share/$2"
}

[[ $1 == --cmd ]]
name=$2
shift 2
while [[ $# -gt 0 ]]; do
  case $1 in
    --bash) put "$2" "bash-completion/completions/$name" ;;
    --fish) put "$2" "fish/vendor_completions.d/$name.fish" ;;
    --zsh) put "$2" "zsh/site-functions/_$name" ;;
    *) exit 2 ;;
  esac
  shift 2
done
