package nixdaemon

// operation is the number of a worker operation.
type operation uint64

const (
	opIsValidPath           operation = 1
	opQueryReferrers        operation = 6
	opAddToStore            operation = 7
	opAddTempRoot           operation = 11
	opAddIndirectRoot       operation = 12
	opQueryPathInfo         operation = 26
	opQueryValidPaths       operation = 31
	opQueryValidDerivers    operation = 33
	opQueryMissing          operation = 40
	opBuildPathsWithResults operation = 46
)

// String says what the operation does, for errors.
func (o operation) String() string {
	return map[operation]string{
		opIsValidPath:           "ask the Nix daemon for valid paths",
		opQueryReferrers:        "ask the Nix daemon for referrers",
		opAddToStore:            "add a file to the Nix store",
		opAddTempRoot:           "keep store paths from the garbage collector",
		opAddIndirectRoot:       "register a garbage collector root",
		opQueryPathInfo:         "ask the Nix daemon about store paths",
		opQueryValidPaths:       "ask the Nix daemon for valid paths",
		opQueryValidDerivers:    "ask the Nix daemon for derivers",
		opQueryMissing:          "ask the Nix daemon what is missing",
		opBuildPathsWithResults: "fetch or build store paths",
	}[o]
}
