// Package travel tests that a plan travels: made in one store, pushed to a
// binary cache, launched by one command from a store that has none of it, on
// every Nix daemon that the lab has; and that people are told how a daemon
// builds. The tests need the lab (checks/README.md).
package travel
