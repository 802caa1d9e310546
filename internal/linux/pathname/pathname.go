// Package pathname compares clean paths by their text.
package pathname

import "strings"

// Below reports whether a path is a folder or lies in it. Both are clean.
func Below(path, folder string) bool {
	rest, begins := strings.CutPrefix(path, strings.TrimSuffix(folder, "/"))
	return path == folder || begins && strings.HasPrefix(rest, "/")
}
