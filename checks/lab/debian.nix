# Which Debian packages each package of the lab is made of. Everything else
# that apt pulls in for these becomes the one set of shared libraries.
{
  bash = [ "bash" ];
  bubblewrap = [ "bubblewrap" ];
  bzip2 = [ "bzip2" ];
  cacert = [ "ca-certificates" ];
  coreutils = [ "coreutils" ];
  curl = [ "curl" ];
  diffutils = [ "diffutils" ];
  fd = [ "fd-find" ];
  file = [
    "file"
    "libmagic-mgc"
    "libmagic1t64"
  ];
  findutils = [ "findutils" ];
  gawk = [ "gawk" ];
  git = [ "git" ];
  git-lfs = [ "git-lfs" ];
  glibcLocalesUtf8 = [
    "libc-bin"
    "locales"
  ];
  gnugrep = [ "grep" ];
  gnumake = [ "make" ];
  gnupatch = [ "patch" ];
  gnused = [ "sed" ];
  gnutar = [ "tar" ];
  go = [
    "golang-1.27-go"
    "golang-1.27-src"
  ];
  gzip = [ "gzip" ];
  hello = [ "hello" ];
  jq = [ "jq" ];
  less = [ "less" ];
  nano = [ "nano" ];
  ncurses = [
    "ncurses-base"
    "foot-terminfo"
    "kitty-terminfo"
    "ncurses-bin"
    "ncurses-term"
  ];
  nix = [ "nix-bin" ];
  procps = [
    "libproc2-0"
    "procps"
  ];
  python3 = [
    "libpython3.13-minimal"
    "libpython3.13-stdlib"
    "python3.13-minimal"
  ];
  ripgrep = [ "ripgrep" ];
  tree = [ "tree" ];
  unzip = [ "unzip" ];
  which = [ "gnu-which" ];
  xz = [ "xz-utils" ];
  zip = [ "zip" ];
  zstd = [ "zstd" ];
}
