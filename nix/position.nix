# Where a person wrote the value at `path` of `values`: FILE:LINE:COLUMN, of what
# is around it where the value itself was computed, or null when all was; and
# how many steps of the path that is. A file of a flake is told below the flake,
# as its place in the store would change with every other file there.
values: path:
let
  inherit (builtins)
    elem
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

  # mkIf, mkDefault and the like stand around what was written.
  unwrap =
    values:
    if
      elem (values._type or null) [
        "if"
        "override"
      ]
    then
      unwrap values.content
    else
      values;

  find =
    found: wrapped: path:
    let
      values = unwrap wrapped;
      at = builtins.unsafeGetAttrPos (head path) values;
      here =
        if at == null then
          found.at
        else
          "${below at.file}:${toString at.line}:${toString at.column}";
    in
    if path == [ ] || !isAttrs values || !(values ? ${head path}) then
      found
    else
      find {
        at = here;
        depth = found.depth + 1;
      } values.${head path} (tail path);
in
find {
  at = null;
  depth = 0;
} values path
