# Debian's programs for the lab, by an apt of its own that knows nothing of the
# packages installed here. Sourced by checks/setup.
# shellcheck shell=bash

# mirror RELEASE prints the URI that this machine gets RELEASE from.
mirror() {
  # shellcheck disable=SC2016 # apt's own variables
  apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
    awk -v release="$1" '$1 == release { print $2; exit }'
}

# write_apt_configuration DIR SUITES: own lists and cache, this machine's mirror,
# proxy and keys.
write_apt_configuration() {
  local dir=$1 suites=$2 suite uri codename main security keys=/usr/share/keyrings/debian-archive-keyring
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
  main=$(mirror "$codename")
  security=$(mirror "$codename-security")
  [[ -n $main ]] || die "apt has no source for $codename" "add Debian's archive to apt's sources"
  [[ -e $keys.pgp ]] && keys+=.pgp || keys+=.gpg

  mkdir -p "$dir"/{lists/partial,cache/archives/partial,none}
  : >"$dir/status"
  {
    for suite in $suites; do
      uri=$main
      [[ $suite != *-security ]] || uri=$security
      [[ -z $uri ]] || echo "deb [signed-by=$keys] $uri $suite main"
    done
  } >"$dir/sources.list"
  {
    apt-config dump | grep -E '^Acquire::https?::' || true
    cat <<END
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "$dir/none";
Dir::Etc::parts "$dir/none";
Dir::Etc::preferencesparts "$dir/none";
Dir::State::lists "$dir/lists";
Dir::State::status "$dir/status";
Dir::Cache "$dir/cache";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Architecture "amd64";
END
  } >"$dir/apt.conf"
}

# fetch_archive DIR SUITES NAME...: the packages and all they depend on,
# signatures checked by apt. The archive moves, so nothing is pinned by hash
# here.
fetch_archive() {
  local dir=$1 suites=$2
  shift 2
  write_apt_configuration "$dir" "$suites"
  export APT_CONFIG=$dir/apt.conf
  apt-get -qq update >&2 ||
    die "read Debian $suites" "update this machine's keys: apt-get install debian-archive-keyring"
  apt-get -qq --yes --download-only install "$@" >&2 ||
    die "get Debian's packages of $suites" "if a package has gone from the archive, name its successor in checks/lab/debian.nix"
  unset APT_CONFIG
}

# name_debs FROM TO: a link TO/NAME.deb for each file, and TO/debs.json for Nix.
name_debs() {
  local from=$1 to=$2 file name version comma=
  mkdir -p "$to"
  {
    echo '{'
    for file in "$from"/*.deb; do
      # shellcheck disable=SC2016 # dpkg's own variables
      read -r name version < <(dpkg-deb --show --showformat '${Package} ${Version}\n' "$file")
      ln -f "$file" "$to/$name.deb"
      printf '%s  "%s": {"version": "%s", "sha256": "%s"}' "$comma" "$name" "$version" "$(sha256sum <"$file" | cut -d' ' -f1)"
      comma=$',\n'
    done
    printf '\n}\n'
  } | replace "$to/debs.json"
}
