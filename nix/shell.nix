{
  mkShell,
  bubblewrap,
  deadnix,
  go,
  gofumpt,
  gopls,
  nixfmt,
  passt,
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
    passt
    shellcheck
    statix
  ];
}
