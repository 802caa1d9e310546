package storepath

import (
	"fmt"
	"strings"

	"github.com/nix-community/go-nix/pkg/nixbase32"
)

// Dir is the store folder that claudebox works with. Another folder would
// change every hash, so no public cache could serve it.
const Dir = "/nix/store"

const (
	hashLen    = 32  // base32 characters of a path's hash
	maxNameLen = 211 // libstore/path.hh: StorePath::MaxPathLen
)

// Check returns an error that says what is wrong with path as a store path, or nil.
// It accepts what every Nix since 2.0 accepts: stricter than the newest, which also
// allows some names with a leading dot.
func Check(path string) error {
	base, ok := strings.CutPrefix(path, Dir+"/")
	if !ok {
		return fmt.Errorf("%q is not below %s", path, Dir)
	}
	return CheckBase(base)
}

// CheckBase is [Check] for a path without the store folder: "HASH-NAME".
func CheckBase(base string) error {
	if len(base) < hashLen+2 || base[hashLen] != '-' {
		return fmt.Errorf("%q is not HASH-NAME", base)
	}
	if nixbase32.ValidateString(base[:hashLen]) != nil {
		return fmt.Errorf("%q does not begin with a base32 hash", base)
	}
	name := base[hashLen+1:]
	if name[0] == '.' || len(name) > maxNameLen {
		return fmt.Errorf("%q is not a store name: it begins with a dot or is over %d characters", name, maxNameLen)
	}
	if i := strings.IndexFunc(name, notInName); i >= 0 {
		return fmt.Errorf("%q is not a store name: character %q", name, name[i])
	}
	return nil
}

func notInName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("+-._?=", r)
}

// Of returns the store path that a file below it belongs to.
func Of(file string) (string, error) {
	base, ok := strings.CutPrefix(file, Dir+"/")
	if !ok {
		return "", fmt.Errorf("%q is not below %s", file, Dir)
	}
	base, _, _ = strings.Cut(base, "/")
	if err := CheckBase(base); err != nil {
		return "", err
	}
	return Dir + "/" + base, nil
}

// Name returns the part of a valid store path after the hash: "hello-2.12".
func Name(path string) string { return path[len(Dir)+1+hashLen+1:] }

// In returns the store paths that occur in a text, in order; a path that occurs twice is given twice.
func In(text string) []string {
	var paths []string
	for {
		_, rest, found := strings.Cut(text, Dir+"/")
		if !found {
			return paths
		}
		base := rest
		if end := strings.IndexFunc(rest, notInName); end >= 0 {
			base = rest[:end]
		}
		if CheckBase(base) == nil {
			paths = append(paths, Dir+"/"+base)
		}
		text = rest
	}
}
