// Package network holds the network tiers to their promises in a world made for
// it. A fake host has a LAN, a second one, a tailnet, a VPN, public addresses
// and services of its own; a fake world has everything that the host can reach.
// Every service answers with its name. The built claudebox runs on the fake
// host as an unprivileged user, and a probe inside the sandbox tells what
// it could reach, cell by cell, and what it could undo. A tap tells what was sent
// and had no answer. All of it is done with the bwrap of Debian 12 and of the
// newest Debian as well, where checks/setup could fetch them.
//
// Nothing of it needs root or leaves the machine: host and world are network
// namespaces of a user namespace that the test makes for itself. Of the machine
// it needs user namespaces and a /dev/net/tun that all may open, as udev has it
// (checks/setup sees to that).
//
// The tests carry the build tag lab and run $CLAUDEBOX_BIN; checks/test runs
// them with all others.
package network
