# Packages that the documents name, for package sets that lack some of them.
pkgs: {
  awscli2 = pkgs.hello;
  kubectl = pkgs.hello;
  gnumake = pkgs.gnumake or pkgs.hello;
  openssl = pkgs.hello // {
    outputs = [
      "out"
      "dev"
    ];
    dev = pkgs.hello;
  };
  python3Packages.requests = pkgs.hello;
}
