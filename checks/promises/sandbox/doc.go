// Package sandbox holds claudebox to its promises from inside real sandboxes:
// an unprivileged user starts the built program, and a shell or the probe
// inside tells what is there. Tests of attacks are named after the attack and
// pass when it fails.
//
// The tests need the lab (checks/setup) and carry the build tag lab. They run
// $CLAUDEBOX_BIN; checks/test runs them with all others. The golden
// files of testdata are written anew by `go test -tags lab -update FOLDER`.
package sandbox
