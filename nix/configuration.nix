# Profiles and their pinned plans as one folder, judged and made by the program
# that will read them. A profile that is wrong fails the build, and the message
# says which option it came from.
{
  pkgs,
  claudebox, # with the manifest that knows the profiles' packages, for the machine that builds
  profiles, # name → { text, places }
  option, # what the profiles stand below
}:
let
  inherit (pkgs) lib runCommand writeText;

  names = lib.attrNames profiles;
  file = name: suffix: text: writeText "claudebox-${name}${suffix}" text;
in
runCommand "claudebox-configuration"
  {
    passthru = {
      judge = claudebox;
      texts = lib.mapAttrs (_: it: it.text) profiles;
    };
  }
  ''
    export HOME=$PWD XDG_CONFIG_HOME=$PWD CLAUDEBOX_HOME=$PWD/none
    # All that is asked for stands in the manifest, in a build that could reach
    # the daemon too.
    export NIX_DAEMON_SOCKET_PATH=$PWD/none
    mkdir -p claudebox/profiles claudebox/places $out/plans
    ${lib.concatMapStrings (name: ''
      cp ${file name ".yaml" profiles.${name}.text} claudebox/profiles/${name}.yaml
      cp ${file name ".places" (lib.concatMapStrings (place: place + "\n") profiles.${name}.places)} claudebox/places/${name}
    '') names}
    cp -r claudebox/profiles $out/
    cd claudebox/profiles

    # explain says of each fault which option it is about. A profile is not
    # written here, but defined.
    explain() {
      local line place
      while IFS= read -r line; do
        if [[ $line == *" $CLAUDEBOX_HOME/profiles/"*.yaml ]]; then
          line="claudebox: remedy: define ${option}.profiles.$(basename "$line" .yaml), or name another"
        fi
        printf '%s\n' "$line"
        [[ $line =~ ^claudebox:\ (warning:\ )?([^/:]+)\.yaml:([0-9]+): && -e ../places/''${BASH_REMATCH[2]} ]] || continue
        mapfile -t -s "$((BASH_REMATCH[3] - 1))" -n 1 place <../places/"''${BASH_REMATCH[2]}"
        printf 'claudebox:   that is %s\n' "''${place[0]}"
      done
    }

    judge() {
      local status=0
      ${lib.getExe claudebox} "$@" 2>said || status=$?
      # Warnings too, once: a plan would only repeat them.
      [[ $status == 0 && $1 == plan ]] || explain <said >&2
      return $status
    }

    judge profile validate ${toString names} >/dev/null
    for name in ${toString names}; do
      judge plan --pinned --profile "$name" >$out/plans/"$name".json
    done
  ''
