// Package host reads, once and as values, what a launch depends on outside the plan: who runs claudebox, where, with
// which environment, and the few files of the host's /etc that a sandbox needs a copy of. It is the one reader of the
// environment. It imports diag, beneath, smallfile and the standard library, reads files of /etc, time zones in
// /usr/share and the certificate bundle that the environment names, and writes nothing.
package host
