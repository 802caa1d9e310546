// Package nixdaemon is a client of the Nix daemon: the worker protocol from
// 1.34 (Nix 2.8) to 1.38 (Nix 2.24 and all later ones), on go-nix's wire
// format. It touches nothing but the daemon's socket.
//
// # What it trusts
//
// The daemon decides about the store, so its answers are believed; its bytes
// are not: lengths and counts are claims, memory grows with what arrives,
// colours and control characters are taken out of every text, and what is
// sent is checked here first, because a daemon answers a malformed path by
// hanging up.
//
// [Server] is the other end, for who answers in the daemon's place. There the
// client is not trusted at all, and what it may send is bounded.
//
// # What a connection is worth
//
// A connection pins paths (see [Client.Pin]); when it goes, the pins
// go. Any doubt about the stream therefore ends it for good, and
// [Client.Alive] reports.
//
// # Operations
//
// Tested against: the lab's daemon, 2.26.3 (1.38); Debian 12's, 2.8.0 (1.34),
// and sid's, 2.34.8 (1.38), as daemons of the test's own. "fake" is a daemon
// in the test, for what a real one cannot be made to do.
//
//	 1 IsValidPath               IsValidPath                  2.8 2.26 2.34 fake
//	 6 QueryReferrers            QueryReferrers               2.8 2.26 2.34 fake
//	 7 AddToStore                AddText (package buildbox)
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
// what a collection of single paths answers, on all three.
//
// SetOptions (19) is never sent: all its numbers apply, so that it would
// override what the administrator set for jobs, cores and caches.
package nixdaemon
