# The Go program alone, and its helpers (libexec): what serves the network of its
# sandboxes, and what few sessions need. It knows no store path: what it needs stands in the
# manifest beside it (see default.nix), so that packages may change without Go
# being built again.
{
  lib,
  buildGoModule,
  buildGo126Module ? null,
  go,
  installShellFiles,
  nix-update-script ? null,
  stdenv,
  versionCheckHook ? null,
}:
let
  inherit (lib) fileset;

  # A program for another machine is not run: Go makes one for this.
  run =
    if stdenv.buildPlatform.canExecute stdenv.hostPlatform then
      "$out/bin/claudebox"
    else
      "env GOOS= GOARCH= go run ./cmd/claudebox";

  # An older Go would only say so in the middle of the build.
  needs = lib.head (builtins.match ".*\ngo ([0-9.]+)\n.*" (builtins.readFile ../go.mod));
  isNew = lib.versionAtLeast go.version needs;

  # A nixpkgs whose usual Go is older may have this one beside it.
  build = if isNew || buildGo126Module == null then buildGoModule else buildGo126Module;
in
assert
  isNew || buildGo126Module != null
  || throw "claudebox needs Go ${needs}, and this nixpkgs has ${go.version}: use a newer nixpkgs";
build (finalAttrs: {
  pname = "claudebox-unwrapped";
  version = "0.1.0";

  src = fileset.toSource {
    root = ../.;
    # checks/vendor-hash knows this list too: `go mod vendor` writes what these
    # import, and nothing for other folders.
    fileset = fileset.unions [
      ../cmd
      ../docs/man
      ../internal
      ../go.mod
      ../go.sum
    ];
  };

  vendorHash = import ./vendor-hash.nix;
  subPackages = [
    "cmd/claudebox"
    "cmd/claudebox-devshell"
    "cmd/claudebox-helper"
    "cmd/claudebox-network"
    "cmd/claudebox-stage"
  ];
  env.CGO_ENABLED = 0;
  ldflags = [
    "-s"
    "-X claudebox/internal/cli.Version=${finalAttrs.version}"
  ];

  nativeBuildInputs = [ installShellFiles ];
  postInstall = ''
    mkdir $out/libexec
    mv $out/bin/claudebox-* $out/libexec/
    installManPage docs/man/*
    installShellCompletion --cmd claudebox \
      --bash <(${run} completion bash) \
      --fish <(${run} completion fish) \
      --zsh <(${run} completion zsh)
  '';

  # The tests are a check of their own (checks.nix): they read files outside src.
  doCheck = false;
  doInstallCheck = true;
  nativeInstallCheckInputs = lib.optional (versionCheckHook != null) versionCheckHook;
  versionCheckProgram = "${placeholder "out"}/bin/claudebox";
  versionCheckProgramArg = "version";

  passthru = lib.optionalAttrs (nix-update-script != null) { updateScript = nix-update-script { }; };

  meta = {
    description = "Claude Code at full permissions in a bubblewrap sandbox, packages pinned by Nix";
    longDescription = ''
      claudebox runs Claude Code, or another coding agent, with full permissions
      inside a bubblewrap sandbox: with the packages, files, variables and hosts
      that a profile grants, and nothing else of the machine. What it shows
      before the start is what runs.
    '';
    license = lib.licenses.mit;
    # Of an upstream package: who looks after it; homepage and changelog, as soon
    # as the project has an address.
    maintainers = [ ];
    platforms = [
      "x86_64-linux"
      "aarch64-linux"
    ];
    mainProgram = "claudebox";
  };
})
