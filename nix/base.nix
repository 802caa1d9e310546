# Attributes that are on PATH in every sandbox, in this order, after the
# profile's own packages.
[
  "coreutils"
  "bashInteractive"
  "git"
  "curl"
  "jq"
  "ripgrep"
  "fd"
  "findutils"
  "gnugrep"
  "gnused"
  "gawk"
  "diffutils"
  "less"
  "which"
  "gnutar"
  "gzip"
  "nix"
  "comma"
]
