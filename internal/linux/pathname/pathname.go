// Package pathname compares clean paths as text, without looking at files.
package pathname

import (
	"slices"
	"strings"
)

// Below reports whether path is folder or lies in it. Both must be clean.
func Below(path, folder string) bool {
	_, below := Cut(path, folder)
	return below
}

// BelowAny reports whether path is one of folders or lies in one. All must be clean.
func BelowAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return Below(path, folder) })
}

// Overlap reports whether one of two paths is the other or lies in it. Both must be clean.
func Overlap(a, b string) bool { return Below(a, b) || Below(b, a) }

// Cut returns the part of path below folder, "" for folder itself; or path and false if it is not below.
func Cut(path, folder string) (rest string, below bool) {
	if path == folder {
		return "", true
	}
	rest, below = strings.CutPrefix(path, strings.TrimSuffix(folder, "/"))
	if !below {
		return path, false
	}
	if rest, below = strings.CutPrefix(rest, "/"); !below {
		return path, false
	}
	return rest, true
}
