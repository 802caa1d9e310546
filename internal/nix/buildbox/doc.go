// Package buildbox finds out whether the builds of a Nix daemon are isolated from
// the host. Reading the daemon's configuration is not enough: it may be in any file, and
// where the kernel allows no namespaces, most daemons build without a sandbox
// whatever it says (sandbox-fallback). So the daemon is asked to build a tiny
// derivation that looks for files of the host.
package buildbox
