#!/bin/bash
# The builder of every Debian package in the lab: unpacks $debs and moves what
# lay below /usr to lie below $out. Programs then load their libraries from
# $libs, and from nowhere else; $fixup is run last. Runs with this machine's own dpkg and patchelf,
# since it makes the first programs of the store.
set -euo pipefail
: "${out:?}" "${debs:?}" "${libs:?}" "${fixup=}"
export PATH=/usr/bin:/bin

unpack() {
  local deb
  mkdir tree
  for deb in $debs; do
    # No setuid bits: the store could not keep them anyway.
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C tree --no-same-permissions --exclude='./usr/share/doc' --exclude='./usr/share/man'
  done
}

# move puts DIR of the unpacked tree at $out, below the folder TO.
move() {
  local dir=$1 to=$2
  [[ -d $dir ]] || return 0
  mkdir -p "$out/$to"
  cp -a "$dir/." "$out/$to/"
}

# The rpath is forced (DT_RPATH, not DT_RUNPATH), so that it serves the
# libraries of libraries as well.
patch() {
  local file
  find "$out" -type f \( -perm -u+x -o -name '*.so*' \) -print0 | while IFS= read -r -d '' file; do
    [[ $(head -c4 "$file" | tr -d '\0') == $'\x7fELF' ]] || continue
    patchelf --force-rpath --set-rpath "$libs/lib:$out/lib/x86_64-linux-gnu" "$file" 2>/dev/null || continue
    patchelf --set-interpreter "$libs/lib/ld-linux-x86-64.so.2" "$file" 2>/dev/null || true
  done
}

# wrap makes bin/PROGRAM a program that sets variables first, for programs that
# look for their parts below /usr. The rest of "$@" are the variables,
# NAME=VALUE. It is no script: git is started a dozen times in a session, and a
# shell takes longer to start than git.
wrap() {
  local program=$1 variable
  shift
  mkdir -p "$out/libexec"
  mv "$out/bin/$program" "$out/libexec/$program"
  {
    printf '#include <stdlib.h>\n#include <unistd.h>\nint main(int count, char **words) {\n'
    for variable; do printf 'putenv("%s");\n' "$variable"; done
    printf 'execv("%s", words);\nreturn 127;\n}\n' "$out/libexec/$program"
  } | gcc -x c -Os -s -static -o "$out/bin/$program" -
}

unpack
move tree/usr .
move tree/bin bin
move tree/sbin bin
move tree/lib lib
move tree/etc etc
if [[ -d $out/sbin ]]; then
  move "$out/sbin" bin
  rm -rf "$out/sbin"
fi
patch
eval "$fixup"
