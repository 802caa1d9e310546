# `nix fmt`: Nix and Go in one form each.
{
  treefmt,
  deadnix,
  gofumpt,
  nixfmt,
}:
treefmt.withConfig {
  runtimeInputs = [
    deadnix
    gofumpt
    nixfmt
  ];
  settings = {
    on-unmatched = "info";
    tree-root-file = "flake.nix";
    formatter = {
      deadnix = {
        command = "deadnix";
        options = [ "--edit" ];
        includes = [ "*.nix" ];
      };
      nixfmt = {
        command = "nixfmt";
        includes = [ "*.nix" ];
      };
      gofumpt = {
        command = "gofumpt";
        options = [ "-w" ];
        includes = [ "*.go" ];
      };
    };
  };
}
