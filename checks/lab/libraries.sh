#!/bin/bash
# The builder of the lab's shared libraries: all of them in one folder, with
# the loader, so that one rpath serves every program.
set -euo pipefail
: "${out:?}" "${debs:?}"
export PATH=/usr/bin:/bin

mkdir -p "$out/lib" tree
for deb in $debs; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C tree --no-same-permissions
done
for dir in tree/lib/x86_64-linux-gnu tree/usr/lib/x86_64-linux-gnu; do
  [[ -d $dir ]] || continue
  find "$dir" -maxdepth 1 -name '*.so*' -exec cp -a -t "$out/lib" {} +
done
[[ -x $out/lib/ld-linux-x86-64.so.2 ]]
