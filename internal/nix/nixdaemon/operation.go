package nixdaemon

import "fmt"

// operation is the number of a worker operation.
type operation uint64

const (
	opIsValidPath              operation = 1
	opQueryReferrers           operation = 6
	opAddToStore               operation = 7
	opEnsurePath               operation = 10
	opAddTempRoot              operation = 11
	opAddIndirectRoot          operation = 12
	opFindRoots                operation = 14
	opQueryPathInfo            operation = 26
	opQueryValidPaths          operation = 31
	opQueryValidDerivers       operation = 33
	opQueryMissing             operation = 40
	opQueryDerivationOutputMap operation = 41
	opBuildPathsWithResults    operation = 46
)

// String says what the operation does, for errors.
func (o operation) String() string {
	switch o {
	case opIsValidPath, opQueryValidPaths:
		return "ask the Nix daemon for valid paths"
	case opQueryReferrers:
		return "ask the Nix daemon for referrers"
	case opQueryValidDerivers:
		return "ask the Nix daemon for derivers"
	case opAddToStore:
		return "add a file to the Nix store"
	case opEnsurePath:
		return "fetch a store path"
	case opAddTempRoot:
		return "keep store paths from the garbage collector"
	case opAddIndirectRoot:
		return "register a garbage collector root"
	case opFindRoots:
		return "list the garbage collector's roots"
	case opQueryPathInfo:
		return "ask the Nix daemon about store paths"
	case opQueryMissing:
		return "ask the Nix daemon what is missing"
	case opQueryDerivationOutputMap:
		return "ask the Nix daemon for a derivation's outputs"
	case opBuildPathsWithResults:
		return "fetch or build store paths"
	}
	return fmt.Sprintf("run operation %d of the Nix daemon", uint64(o))
}
