package nixdaemon

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"claudebox/internal/nix/storepath"
)

// operation is an operation of the worker protocol.
type operation struct {
	number uint64
	does   string             // for errors
	takes  func(string) error // checks a word of a request: the daemon answers a bad one by hanging up
	slow   bool               // it builds or fetches: only the caller's context limits its time
}

var (
	isValidPath           = operation{1, "ask the Nix daemon for valid paths", storepath.Check, false}
	queryReferrers        = operation{6, "ask the Nix daemon for referrers", storepath.Check, false}
	addTempRoot           = operation{11, "keep store paths from the garbage collector", storepath.Check, false}
	addIndirectRoot       = operation{12, "register a garbage collector root", checkLink, false}
	queryPathInfo         = operation{26, "ask the Nix daemon about store paths", storepath.Check, false}
	queryValidPaths       = operation{31, "ask the Nix daemon for valid paths", storepath.Check, false}
	queryValidDerivers    = operation{33, "ask the Nix daemon for derivers", storepath.Check, false}
	queryMissing          = operation{40, "ask the Nix daemon what is missing", checkTarget, true}
	buildPathsWithResults = operation{46, "fetch or build store paths", checkTarget, true}
)

func checkLink(link string) error {
	if !filepath.IsAbs(link) {
		return fmt.Errorf("%q is not an absolute path", link)
	}
	return nil
}

// checkTarget returns an error that says what is wrong with a target to fetch or build, or nil.
// A target is a plain store path (then nothing is built, even if the path is a derivation), or
// outputs of a derivation: "/nix/store/….drv!bin,out", sorted as daemons up to 2.8
// return them, or "….drv!*" for all. The command line's form with "^" makes every
// daemon hang up.
func checkTarget(target string) error {
	path, outputs, derived := strings.Cut(target, "!")
	if err := storepath.Check(path); err != nil || !derived {
		return err
	}
	if !strings.HasSuffix(path, ".drv") {
		return fmt.Errorf("%q is not a derivation, so it has no outputs", path)
	}
	names := strings.Split(outputs, ",")
	if outputs != "*" && (slices.ContainsFunc(names, badOutput) || !slices.IsSorted(names)) {
		return fmt.Errorf("%q are not names of outputs, sorted", names)
	}
	return nil
}

// badOutput reports whether name cannot be the name of an output: that name becomes
// part of a store path's name.
func badOutput(name string) bool {
	return storepath.CheckBase(strings.Repeat("0", 32)+"-"+name) != nil
}
