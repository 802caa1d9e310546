# The options of programs.claudebox, for home-manager and NixOS alike.
flake:
{
  config,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib) mkOption types;
  settings = pkgs.formats.json { };

  profile = types.submodule {
    options = {
      packages = mkOption {
        type = types.listOf (types.either types.package types.str);
        default = [ ];
        example = lib.literalExpression ''[ pkgs.kubectl "python3Packages.requests" ]'';
        description = ''
          Packages that the sandbox has beside the base ones, first on
          {env}`PATH` and in this order. Text names an attribute of nixpkgs.
          Each becomes part of this generation, so starting a session fetches
          and evaluates nothing.
        '';
      };

      settings = mkOption {
        inherit (settings) type;
        default = { };
        example = {
          network = "inet";
          env.AWS_PROFILE = "work";
        };
        description = ''
          The rest of the profile, as {command}`claudebox profile schema`
          describes it. A fault in it fails the build.
        '';
      };
    };
  };
in
{
  options.programs.claudebox = {
    enable = lib.mkEnableOption "claudebox, which runs a coding agent in a sandbox";

    package = mkOption {
      type = types.nullOr types.package;
      default = flake.lib.mkClaudebox { inherit pkgs; };
      defaultText = lib.literalMD "claudebox of its flake, with your `pkgs`";
      description = ''
        The claudebox to install, or `null` for none: profiles are then
        written but judged only when they are used.
      '';
    };

    profiles = mkOption {
      type = types.attrsOf profile;
      default = { };
      example = lib.literalExpression ''{ work.packages = [ pkgs.kubectl ]; }'';
      description = "Profiles by name, for {command}`claudebox --profile NAME`.";
    };

    defaultProfile = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "work";
      description = "The profile that is used when none is named.";
    };
  };

  config = lib.mkIf config.programs.claudebox.enable {
    assertions = [
      {
        assertion =
          let
            cfg = config.programs.claudebox;
          in
          cfg.defaultProfile == null || cfg.profiles ? ${cfg.defaultProfile};
        message = ''
          programs.claudebox.defaultProfile: there is no profile "${toString config.programs.claudebox.defaultProfile}".
          Define it in programs.claudebox.profiles, or name another.
        '';
      }
    ];
  };
}
