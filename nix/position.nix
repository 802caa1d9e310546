# Where a person wrote the value at `path` of `values`, as FILE:LINE:COLUMN, or
# what is around it where the value itself was computed; null when all was. A
# file of a flake is told below the flake: its place in the store would change
# with every other file there.
values: path:
let
  inherit (builtins)
    head
    isAttrs
    match
    tail
    ;
  below =
    file:
    let
      inStore = match "${builtins.storeDir}/[^/]+/(.*)" file;
    in
    if inStore == null then file else head inStore;
  find =
    found: values: path:
    if path == [ ] || !isAttrs values || !(values ? ${head path}) then
      found
    else
      let
        at = builtins.unsafeGetAttrPos (head path) values;
        here = if at == null then found else "${below at.file}:${toString at.line}:${toString at.column}";
      in
      find here values.${head path} (tail path);
in
find null values path
