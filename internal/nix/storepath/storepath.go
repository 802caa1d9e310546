package storepath

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/nix-community/go-nix/pkg/nixbase32"
)

// Dir is the store that claudebox works with. Another store folder would
// change every hash, so no public cache could serve it.
const Dir = "/nix/store"

const (
	hashLen    = 32  // base32 characters of a path's hash
	maxNameLen = 211 // libstore/path.hh: StorePath::MaxPathLen
)

// Check says what is wrong with path as a store path, or nil. It takes what
// every Nix since 2.0 takes: a stricter reading than the newest, which also
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
	if CheckHash(base[:hashLen]) != nil {
		return fmt.Errorf("%q does not begin with a base32 hash", base)
	}
	return checkName(base[hashLen+1:])
}

// CheckHash reports whether hash is the hash part of a store path.
func CheckHash(hash string) error {
	if len(hash) != hashLen || nixbase32.ValidateString(hash) != nil {
		return fmt.Errorf("%q is not a store hash", hash)
	}
	return nil
}

func checkName(name string) error {
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

// Made is the path that Nix gives what is made of a text: a derivation's output
// ("output:out", of the derivation without that path), or a file of the text.
func Made(kind, text, name string) string {
	content := sha256.Sum256([]byte(text))
	whole := sha256.Sum256([]byte(kind + ":sha256:" + hex.EncodeToString(content[:]) + ":" + Dir + ":" + name))
	short := make([]byte, 20)
	for i, b := range whole {
		short[i%len(short)] ^= b
	}
	return Dir + "/" + nixbase32.EncodeToString(short) + "-" + name
}

// Of cuts a file below a store path down to that store path.
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

// Name is the part after the hash: "hello-2.12" of a valid store path.
func Name(path string) string { return path[len(Dir)+1+hashLen+1:] }

// In gives the store paths that a text names, in its order.
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
