# Attributes that are on PATH, after those of base.nix, unless the profile says
# `toolbox: base`: what agents reach for in any project.
[
  "gnumake"
  "gnupatch"
  "python3"
  "procps"
  "ncurses"
  "file"
  "nano"
  "tree"
  "xz"
  "bzip2"
  "zstd"
  "zip"
  "unzip"
]
