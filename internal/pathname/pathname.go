// Package pathname compares clean paths by their text.
package pathname

import "strings"

// Below tells whether a path is a folder or lies in it. Both are clean.
func Below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
