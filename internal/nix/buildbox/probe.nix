# The probe: it looks for files of the host, and writes whether it is closed off from them.
# It uses only builtins of bash, so it needs no other program.
#
# system   the daemon's
# bash     path of bash in the store
# marks    JSON: a list of files
# nonce    makes each probe another, so that no cache can have its output
# without  whether it asks for no sandbox
{
  system,
  bash,
  marks,
  nonce,
  without,
}:
let
  name = "claudebox-probe";
  look = ''said=true; for mark; do [[ ! -e $mark ]] || said=false; done; echo "$said" >"$out"'';
  probe = derivation (
    {
      inherit name system nonce;
      builder = builtins.storePath bash;
      args = [
        "-c"
        look
        name
      ]
      ++ builtins.fromJSON marks;
      allowSubstitutes = false;
      preferLocalBuild = true;
    }
    // (if without then { __noChroot = true; } else { })
  );
in
{
  drv = probe.drvPath;
  out = probe.outPath;
}
