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
// # What a connection is worth
//
// A connection pins paths (see [Client.AddTempRoots]); when it goes, the pins
// go. Any doubt about the stream therefore ends it for good, and
// [Client.Alive] tells.
//
// # Operations
//
//	 1 IsValidPath               IsValidPath
//	 6 QueryReferrers            QueryReferrers
//	10 EnsurePath                EnsurePath
//	11 AddTempRoot               AddTempRoots
//	12 AddIndirectRoot           AddIndirectRoot
//	14 FindRoots                 FindRoots
//	23 QueryAllValidPaths        QueryAllValidPaths
//	26 QueryPathInfo             QueryPathInfo, QueryPathInfos, Closure
//	29 QueryPathFromHashPart     QueryPathFromHashPart
//	31 QueryValidPaths           QueryValidPaths, SubstituteValidPaths
//	40 QueryMissing              QueryMissing
//	41 QueryDerivationOutputMap  QueryDerivationOutputMap
//	46 BuildPathsWithResults     BuildPaths
//
// The lab tests run each of them against the daemons of Nix 2.8.0 (protocol
// 1.34), 2.26.3 and 2.34.8 (both 1.38).
//
// SetOptions (19) is never sent: all its numbers apply, so that it would
// override what the administrator set for jobs, cores and caches.
package nixdaemon
