// Package travel tests that a plan travels: made in one store, pushed to a
// binary cache, and launched by one command where the store has none of it, with
// every Nix daemon that the lab has; and that people are warned of a daemon that
// builds outside a sandbox. The tests need the lab (checks/README.md).
package travel
