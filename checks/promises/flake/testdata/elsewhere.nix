# An overlay by which the lab's packages are built for arm64, where that matters:
# what Go makes. The rest stays what it is.
{ lab }:
_: previous: {
  stdenv = previous.stdenv // {
    hostPlatform = {
      system = "aarch64-linux";
      isLinux = true;
    };
    buildPlatform.canExecute = host: host.system == "x86_64-linux";
  };
  buildPackages = import lab { system = "x86_64-linux"; };
  buildGoModule =
    arguments:
    previous.buildGoModule (
      arguments
      // {
        env = arguments.env // {
          GOARCH = "arm64";
        };
      }
    );
}
