// Package buildbox finds out whether what a Nix daemon builds is kept from the
// host. The daemon's configuration may stand in any file, and says less than it
// seems to: where the kernel allows no namespaces, most daemons build without
// a sandbox (sandbox-fallback). So the daemon builds something tiny that looks
// around.
package buildbox
