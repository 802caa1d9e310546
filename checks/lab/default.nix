# The stand-in nixpkgs: the attributes that claudebox's flake and tests name.
{
  system ? builtins.currentSystem,
  config ? { },
  overlays ? [ ],
  lib ? import ./lib.nix, # nixpkgs' own, where it can be had
}:
let
  store = import ./store.nix {
    inherit system;
    debs = builtins.fromJSON (builtins.readFile ./debs.json);
  };

  # An entry of debian.nix as a package.
  debian =
    attr: mainProgram: fixup:
    store.relocate attr fixup
    // {
      pname = attr;
      version = store.version attr;
      outputs = [ "out" ];
      meta = {
        inherit mainProgram;
        outputsToInstall = [ "out" ];
      };
    };
  plain = attr: debian attr attr "";

  build = import ./build.nix {
    inherit system config;
    inherit (packages) bash go;
    programs = with packages; [
      bash
      coreutils
      diffutils
      findutils
      gawk
      gnugrep
      gnused
      gnutar
      gzip
    ];
  };

  base =
    build
    // import ./samples.nix {
      inherit config;
      inherit (packages) lib hello runCommand;
    }
    // {
      inherit lib;
      path = ./.;
      formats.json = _: { type = lib.types.json; };
      callPackage = lib.callPackageWith packages;
      inherit config;
      # With more of them, laid above the ones that are there.
      extend =
        overlay:
        import ./. {
          inherit system config lib;
          overlays = overlays ++ [ overlay ];
        };
      stdenv = {
        hostPlatform = {
          inherit system;
          isLinux = true;
        };
        buildPlatform.canExecute = _: true;
        cc.cc.lib = store.libraries;
        cc.bintools.dynamicLinker = "${store.libraries}/lib/ld-linux-x86-64.so.2";
      };

      bash = debian "bash" "bash" "ln -s bash $out/bin/sh";
      bashInteractive = packages.bash;
      bubblewrap = debian "bubblewrap" "bwrap" "";
      coreutils = plain "coreutils";
      # The library is in the one set.
      bzip2 = debian "bzip2" "bzip2" "" // { lib = store.libraries; };
      curl = plain "curl";
      diffutils = debian "diffutils" "diff" "";
      fd = debian "fd" "fd" "mv $out/bin/fdfind $out/bin/fd";
      file =
        debian "file" "file"
          "mv $out/lib/file/magic.mgc $out/share/; wrap file MAGIC=$out/share/magic.mgc";
      findutils = debian "findutils" "find" "";
      gawk = debian "gawk" "gawk" "ln -s gawk $out/bin/awk";
      git =
        debian "git" "git"
          "wrap git GIT_EXEC_PATH=$out/lib/git-core GIT_TEMPLATE_DIR=$out/share/git-core/templates";
      git-lfs = plain "git-lfs";
      gnugrep = debian "gnugrep" "grep" "";
      gnumake = debian "gnumake" "make" "";
      gnupatch = debian "gnupatch" "patch" "";
      gnused = debian "gnused" "sed" "";
      gnutar = debian "gnutar" "tar" "";
      go = debian "go" "go" "mkdir -p $out/bin; ln -s ../lib/go-1.27/bin/go ../lib/go-1.27/bin/gofmt $out/bin/";
      gzip = plain "gzip";
      hello = plain "hello";
      jq = plain "jq";
      # What Debian's git is made to call.
      less = debian "less" "less" "ln -s less $out/bin/pager";
      nano = plain "nano";
      nix = plain "nix";
      procps = debian "procps" "ps" "";
      python3 = debian "python3" "python3" "ln -s python3.13 $out/bin/python3";
      ripgrep = debian "ripgrep" "rg" "";
      tree = plain "tree";
      unzip = plain "unzip";
      which = debian "which" "which" "ln -s which.gnu $out/bin/which";
      xz = debian "xz" "xz" "" // { lib = store.libraries; };
      zip = plain "zip";
      zstd = debian "zstd" "zstd" "" // { lib = store.libraries; };

      cacert = debian "cacert" "" ''
        mkdir -p $out/etc/ssl/certs
        find $out/share/ca-certificates -name '*.crt' -print0 | sort -z | xargs -0 cat > $out/etc/ssl/certs/ca-bundle.crt
      '';
      glibcLocalesUtf8 = debian "glibcLocalesUtf8" "" ''
        export I18NPATH=$out/share/i18n
        mkdir -p $out/usr/lib/locale
        for locale in C en_US; do
          $out/bin/localedef --prefix=$out -i $locale -f UTF-8 $locale.UTF-8
        done
        mv $out/usr/lib/locale/locale-archive $out/lib/locale/
        rm -rf $out/usr $out/share
      '';
      ncurses = debian "ncurses" "tic" "";
      # Their descriptions are among those that Debian packs for ncurses.
      foot = packages.ncurses;
      ghostty = packages.ncurses;
      kitty = packages.ncurses;

      # Tools of the checks and of the development shell.
      deadnix = build.absent "deadnix" { };
      go-tools = build.absent "go-tools" { };
      gofumpt = build.absent "gofumpt" { };
      gopls = build.absent "gopls" { };
      nixfmt = build.absent "nixfmt" { };
      shellcheck = build.absent "shellcheck" { };
      statix = build.absent "statix" { };
      treefmt.withConfig = _: build.absent "treefmt" { meta.mainProgram = "treefmt"; };
      mkShell = { packages }: build.absent "nix-shell" { inherit packages; };
      # The machines of a test are evaluated, its script is there to be read.
      testers.runNixOSTest =
        test:
        let
          machines = lib.mapAttrs (
            _: node:
            (import ./nixos/lib/eval-config.nix {
              pkgs = packages;
              modules = [ node ];
            }).config
          ) test.nodes;
        in
        build.absent "vm-test-${test.name}" {
          passthru = { inherit (test) testScript; inherit machines; };
          machines = builtins.toJSON (
            lib.mapAttrs (_: machine: {
              inherit (machine) assertions warnings;
              files = lib.attrNames machine.environment.etc;
              packages = map lib.getName machine.environment.systemPackages;
            }) machines
          );
        };

      # It says that it ran, and with which words.
      claude-code = build.runCommand "claude-code-1.0" {
        pname = "claude-code";
        version = "1.0";
        meta = {
          mainProgram = "claude";
          license = lib.licenses.unfree;
        };
      } ''
        mkdir -p $out/bin
        printf '#!%s\necho "Claude Code:" "$@"\n' ${packages.bash}/bin/bash > $out/bin/claude
        chmod +x $out/bin/claude
      '';

      # Every library is in the one set.
      acl = store.libraries;
      attr = store.libraries;
      libsodium = store.libraries;
      libssh = store.libraries;
      libxml2 = store.libraries;
      openssl = store.libraries;
      util-linux = store.libraries;
      zlib = store.libraries;
      nix-ld = build.runCommand "nix-ld" { nativeBuildInputs = [ packages.go ]; } ''
        export HOME=$PWD CGO_ENABLED=0 GOTOOLCHAIN=local
        go build -trimpath -o $out/libexec/nix-ld ${./nix-ld/main.go}
      '';

      installShellFiles = build.runCommand "install-shell-files" { } ''
        mkdir -p $out/bin
        cp ${./install-shell-completion.sh} $out/bin/installShellCompletion
        cp ${./install-man-page.sh} $out/bin/installManPage
        sed -i '1s|.*|#!${packages.bash}/bin/bash|' $out/bin/*
        chmod 755 $out/bin/*
      '';

      comma = build.runCommand "comma" { meta.mainProgram = "comma"; } ''
        mkdir -p $out/bin
        printf '%s\n' hello\ hello python3\ python3 > $out/database
        {
          printf '%s\n' '#!${packages.bash}/bin/bash' "database=$out/database"
          cat ${./comma.sh}
        } > $out/bin/comma
        chmod 755 $out/bin/comma
        ln -s comma $out/bin/,
      '';
    };

  # Each overlay sees what all of them come to.
  packages = builtins.foldl' (set: overlay: set // overlay packages set) base overlays;
in
packages
