// Package nixdaemon is a client of the Nix daemon: the worker protocol from
// 1.34 (Nix 2.8) to 1.38 (Nix 2.24 and all later ones), on go-nix's wire
// format. It opens nothing but the daemon's socket, and starts [Options.Local] if there is none.
//
// # What it trusts
//
// The daemon decides about the store, so its answers are believed. Its bytes
// are not trusted: memory grows with the bytes that arrive, not with the lengths and
// counts it announces; escape sequences and control characters are removed from its messages; and
// every request is checked here first, because a daemon answers a malformed path by
// hanging up.
//
// [Server] is the other end, for a process that answers in place of the daemon. It does
// not trust the client at all, and bounds what the client may send.
//
// # What a connection is worth
//
// A connection pins paths (see [Client.Pin]); when it ends, the pins end
// with it. Any doubt about the stream therefore ends the connection for good, and
// [Client.Alive] returns why.
//
// # Operations
//
// Tested against: the lab's daemon, 2.26.3 (1.38); Debian 12's, 2.8.0 (1.34),
// and sid's, 2.34.8 (1.38), as daemons of the test's own. "fake" is a daemon
// in the test, for what a real one cannot be made to do.
//
//	 1 IsValidPath               IsValidPath                  2.8 2.26 2.34 fake
//	 6 QueryReferrers            QueryReferrers               2.8 2.26 2.34 fake
//	11 AddTempRoot               Pin                          2.8 2.26 2.34 fake
//	12 AddIndirectRoot           AddIndirectRoots             2.8 2.26 2.34 fake
//	26 QueryPathInfo             QueryPathInfo(s), Closure    2.8 2.26 2.34 fake
//	31 QueryValidPaths           QueryValidPaths, Pin         2.8 2.26 2.34 fake
//	33 QueryValidDerivers        QueryValidDerivers           fake
//	40 QueryMissing              QueryMissing, Realise        2.8 2.26 2.34 fake
//	46 BuildPathsWithResults     BuildPaths, Realise          2.8 2.26 2.34 fake
//
// Whole collections by nix-store --gc, fetching from a cache, a killed daemon
// and a full disk are tested on 2.8 and 2.34, whose stores are the test's own;
// the answers to a collection of single paths, on all three.
//
// SetOptions (19) is never sent: the daemon applies all the numbers in it, so it would
// override what the administrator set for jobs, cores and caches.
package nixdaemon
