// Package doctor makes faults on purpose and looks at what claudebox
// says of them, by `claudebox check` and by a launch. It needs the lab
// (checks/README.md): a claudebox with its manifest, a store, a daemon that
// does not trust the user. No right is needed: what only root could break is
// broken in a user and mount namespace of the test's own.
package doctor
