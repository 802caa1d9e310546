package nixdaemon

// operation is one of the worker's.
type operation struct {
	number uint64
	does   string // for errors
}

var (
	isValidPath           = operation{1, "ask the Nix daemon for valid paths"}
	queryReferrers        = operation{6, "ask the Nix daemon for referrers"}
	addToStore            = operation{7, "add a file to the Nix store"}
	addTempRoot           = operation{11, "keep store paths from the garbage collector"}
	addIndirectRoot       = operation{12, "register a garbage collector root"}
	queryPathInfo         = operation{26, "ask the Nix daemon about store paths"}
	queryValidPaths       = operation{31, "ask the Nix daemon for valid paths"}
	queryValidDerivers    = operation{33, "ask the Nix daemon for derivers"}
	queryMissing          = operation{40, "ask the Nix daemon what is missing"}
	buildPathsWithResults = operation{46, "fetch or build store paths"}
)
