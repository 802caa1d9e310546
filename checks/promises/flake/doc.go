// Package flake uses the flake as people do, with a real Nix and the lab's
// packages: nix flake check, build, run and profile install; the modules in a
// home-manager generation and a NixOS; a project with a claudebox of its own.
package flake
