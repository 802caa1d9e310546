# Evaluates the two modules inside home-manager and NixOS: what they install,
# write, refuse and warn of. modules.json holds what is expected.
{
  flake, # ours: of it the modules take lib.mkClaudebox
  pkgs,
  nixpkgs, # folders of the sources
  homeManager,
}:
let
  inherit (pkgs) lib;

  evaluateHome =
    modules:
    homeLib.evalModules {
      modules =
        modules
        ++ import "${homeManager}/modules/modules.nix" {
          inherit pkgs;
          lib = homeLib;
          useNixpkgsModule = false;
        }
        ++ [
          {
            home = {
              username = "alice";
              homeDirectory = "/home/alice";
              stateVersion = "26.05";
            };
            # Made of all of its options.
            manual.manpages.enable = false;
          }
        ];
      specialArgs.modulesPath = "${homeManager}/modules";
    };
  homeLib = import "${homeManager}/modules/lib/stdlib-extended.nix" lib;

  evaluateSystem =
    modules:
    import "${nixpkgs}/nixos/lib/eval-config.nix" {
      system = null;
      inherit pkgs;
      modules = modules ++ [ { system.stateVersion = "26.05"; } ];
    };

  # What a module touches, of either system.
  parts = {
    home = config: {
      installs = config.home.packages;
      writes = config.xdg.configFile;
      aliases = config.home.shellAliases;
      beyond = lib.attrNames config.home.activation ++ lib.filter (name: builtins.match "(.*/)?[.]config/claudebox/.*" name == null) (
        lib.attrNames config.home.file
      );
      inherit (config) assertions warnings;
    };
    system = config: {
      installs = config.environment.systemPackages;
      writes = config.environment.etc;
      aliases = config.environment.shellAliases;
      beyond = [ ];
      inherit (config) assertions warnings;
    };
  };

  # A store path without its hash, which changes with everything.
  below =
    path:
    builtins.unsafeDiscardStringContext (
      builtins.substring (builtins.stringLength builtins.storeDir + 34) (-1) "${path}"
    );

  # The difference that our module makes to a system without it. That one is
  # evaluated once for all that compare with it.
  difference =
    part: evaluate: others:
    let
      without = part (evaluate others).config;
    in
    ours:
    let
      with' = part (evaluate (others ++ ours)).config;
      more = key: lib.filter (it: !(lib.elem it (names key without))) (names key with');
      names =
        key: of:
        {
          installs = map lib.getName of.installs;
          writes = lib.mapAttrsToList (
            name: file: if lib.hasPrefix "claudebox/" name then "${name} from ${below file.source}" else name
          ) of.writes;
          aliases = lib.mapAttrsToList (name: value: "${name}=${value}") of.aliases;
          # Where it was set stands on a line of its own.
          refuses = map (it: lib.head (lib.splitString "\n" it.message)) (lib.filter (it: !it.assertion) of.assertions);
          inherit (of) warnings beyond;
        }
        .${key};
      packages = lib.filter (package: lib.getName package == "claudebox") with'.installs;
    in
    # Nothing else is looked at in a system that has an assertion failed.
    if more "refuses" != [ ] then
      { refuses = more "refuses"; }
    else
      lib.filterAttrs (_: value: value != [ ] && value != { }) (
        lib.genAttrs [ "installs" "writes" "aliases" "warnings" "beyond" ] more
        // {
          knows = lib.concatMap (package: package.known) packages;
          agent = map (package: lib.getName package.agent) (lib.filter (package: package.agent != null) packages);
          profiles = lib.zipAttrsWith (_: lib.head) (
            map (package: lib.optionalAttrs (more "writes" != [ ]) package.configuration.texts) packages
          );
        }
      );

  homeWith =
    others:
    let
      changed = difference parts.home evaluateHome [ others ];
    in
    settings:
    changed [
      (import ../../../modules/home-manager.nix flake)
      { programs.claudebox = settings; }
    ];
  home = homeWith { };
  system =
    others:
    let
      changed = difference parts.system evaluateSystem [ others ];
    in
    settings:
    changed [
      (import ../../../modules/nixos.nix flake)
      { programs.claudebox = settings; }
    ];
  plainSystem = system { };

  # The same settings mean the same in both.
  both =
    settings:
    let
      inHome = home settings;
      inSystem = plainSystem settings;
    in
    assert inHome == inSystem;
    inHome;

  on = settings: { enable = true; } // settings;

  # A package whose store path, which may get into its name, never changes.
  fake =
    letter: pname:
    let
      hash = lib.concatStrings (lib.genList (_: letter) 32);
      out = {
        type = "derivation";
        inherit pname;
        name = "${pname}-9";
        outPath = "${builtins.storeDir}/${hash}-${pname}-9";
        drvPath = "${builtins.storeDir}/${hash}-${pname}-9.drv";
        outputs = [ "out" ];
        meta = { };
        inherit out;
      };
    in
    out;
in
{
  "not enabled, nothing is done" = both { profiles.work.packages = [ pkgs.hello ]; };
  "nothing configured, nothing is written" = both (on { });
  "every option" = both (on {
    agentPackage = pkgs.hello;
    alias = "claude";
    settings = {
      confirm = "changed";
      network = "none";
    };
    extraPackages = [ pkgs.jq ];
    profiles = {
      work = {
        packages = [
          pkgs.hello
          "sampleSet.hello"
        ];
        settings = {
          network = "full";
          env.AWS_PROFILE = "work";
        };
      };
      play.settings.extends = "work";
    };
    defaultProfile = "work";
  });
  "no package still writes profiles" = both (on {
    package = null;
    profiles.work.packages = [ pkgs.hello ];
  });
  "what is said of every profile makes a default one" = both (on { extraPackages = [ pkgs.hello ]; });
  "a profile may be called default" = both (on {
    defaultProfile = "default";
    profiles.default = { };
  });
  "outputs that are asked for are known" = both (on {
    profiles.work.packages = [
      "manyOutputsSample^dev"
      pkgs.manyOutputsSample
    ];
  });
  "two packages of one name are told apart" = both (on {
    profiles.work.packages = [
      (fake "a" "twin")
      (fake "b" "twin")
    ];
  });
  "a package of one's own takes nobody's place in the base" = both (on {
    profiles.work.packages = [ (fake "c" "git") ];
  });
  "a name that no attribute can have" = both (on {
    profiles.work.packages = [ (fake "d" "7zip+x") ];
  });

  "a default profile must exist" = both (on {
    defaultProfile = "wrok";
    profiles.work = { };
  });
  "there is one default profile" = both (on {
    defaultProfile = "work";
    profiles.work = { };
    profiles.default = { };
  });
  "a profile has one name" = both (on {
    profiles.work.settings.name = "play";
    profiles.play = { };
  });
  "a name that no profile can have" = both (on { profiles."a/b" = { }; });
  "packages have one place" = both (on {
    settings.packages = [ "jq" ];
    profiles.work.settings.packages = [ "hello" ];
  });
  "packages come from pkgs" = both (on { profiles.work.settings.nixpkgs = "github:NixOS/nixpkgs"; });
  "a package has to be a claudebox" = both (on { package = pkgs.hello; });
  "an attribute has to exist" = both (on { profiles.work.packages = [ "helo" ]; });
  "an attribute has to be a package" = both (on { extraPackages = [ "sampleSet" ]; });

  "home-manager's Claude Code is the agent" = homeWith {
    programs.claude-code = {
      enable = true;
      package = fake "d" "claude-code";
    };
  } (on { });
  "an agent of one's own is not replaced" =
    homeWith
      {
        programs.claude-code = {
          enable = true;
          package = fake "d" "claude-code";
        };
      }
      (on {
        agentPackage = fake "e" "other-agent";
      });

  "no user namespaces, no sandbox" = system { security.allowUserNamespaces = false; } (on { });
  "no user namespaces by sysctl" = system { boot.kernel.sysctl."user.max_user_namespaces" = 0; } (on { });
  "not enabled, nothing is asked of the system" = system { security.allowUserNamespaces = false; } { };
}
