# The options of programs.claudebox, for home-manager and NixOS alike.
flake:
{ lib, pkgs, ... }:
let
  inherit (lib) mkOption types;

  # Anything else is refused by an assertion, which knows the line.
  packages = types.listOf (
    types.raw
    // {
      inherit (types.either types.package types.str) description descriptionClass;
    }
  );
  settings = (import ./settings.nix { inherit lib pkgs; }).type;

  profile = types.submodule {
    options = {
      packages = mkOption {
        type = packages;
        default = [ ];
        example = lib.literalExpression ''[ pkgs.kubectl "python3Packages.requests" "openssl^dev" ]'';
        description = ''
          Packages that the sandbox has besides the base ones, first on
          {env}`PATH` and in this order. Text names an attribute of your
          `pkgs`, with outputs if need be. Each becomes part of this
          generation, so starting a session fetches and evaluates nothing.
        '';
      };

      settings = mkOption {
        type = settings;
        default = { };
        example = {
          network = "inet";
          env.AWS_PROFILE = "work";
        };
        description = ''
          The rest of the profile, with the keys of
          {option}`programs.claudebox.settings`; {manpage}`claudebox-profile(5)`
          describes them. A fault in it fails the build, with the option and the
          line. It is readable by everybody, like all of the Nix store: no place
          for secrets.
        '';
        visible = "shallow";
      };
    };
  };
in
{
  _file = ./options.nix;
  key = "claudebox#options";

  options.programs.claudebox = {
    enable = lib.mkEnableOption "claudebox, which runs a coding agent in a sandbox";

    package =
      lib.mkPackageOption { claudebox = flake.lib.mkClaudebox { inherit pkgs; }; } "claudebox" {
        nullable = true;
        pkgsText = "claudebox.packages.\${system}";
        extraDescription = ''
          It is made by `lib.mkClaudebox` of claudebox's flake; profiles that it
          was made with are kept, beside those of
          {option}`programs.claudebox.profiles`. With `null`, profiles are written
          but judged only when they are used, no plan is made, and
          {option}`programs.claudebox.agentPackage` has no effect.
        '';
      };

    agentPackage = lib.mkPackageOption pkgs "claude-code" {
      nullable = true;
      default = null;
      extraDescription = ''
        The agent to run, pinned like everything else. `null` takes the
        {command}`claude` of your {env}`PATH`. Where home-manager has
        {option}`programs.claude-code.enable`, that one is the default.
        Claude Code is unfree: your `pkgs` has to allow it.
      '';
    };

    alias = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "claude";
      description = ''
        A shell alias that starts {command}`claudebox`. With `"claude"`, typing
        that runs Claude Code in the sandbox; {command}`command claude` still
        runs it without one.
      '';
    };

    extraPackages = mkOption {
      type = packages;
      default = [ ];
      example = lib.literalExpression "[ pkgs.gnumake ]";
      description = ''
        Packages of every profile here, behind its own; one that extends
        another has them from there. Where no profile is defined, they make one
        called `default`.
      '';
    };

    settings = mkOption {
      type = settings;
      default = { };
      example = {
        confirm = "changed";
      };
      description = ''
        Settings of every profile here, unless it says otherwise: a key that a
        profile sets itself is taken from there as a whole, and one that extends
        another has them from there. Where no profile is defined, they make one
        called `default`.
      '';
    };

    profiles = mkOption {
      type = types.attrsOf profile;
      default = { };
      example = lib.literalExpression ''
        {
          work = {
            packages = [ pkgs.kubectl pkgs.awscli2 ];
            settings.env.AWS_PROFILE = "work";
          };
        }
      '';
      description = ''
        Profiles by name, for {command}`claudebox --profile NAME`. Each is
        judged when this generation is built, and its plan is pinned then: what
        a session gets is what {command}`claudebox plan -P NAME` shows.
      '';
    };

    defaultProfile = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "work";
      description = ''
        The one of {option}`programs.claudebox.profiles` that is used when none
        is named. `null` leaves it to a profile called `default`, if there is
        one, and else to the built-in one.
      '';
    };
  };
}
