{
  mkShell,
  bubblewrap,
  deadnix,
  go,
  gofumpt,
  gopls,
  nixfmt,
  shellcheck,
  statix,
}:
mkShell {
  packages = [
    bubblewrap
    deadnix
    go
    gofumpt
    gopls
    nixfmt
    shellcheck
    statix
  ];
}
