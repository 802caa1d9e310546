// Package pathname compares clean paths by their text.
package pathname

import "strings"

// Below reports whether a path is a folder or lies in it. Both are clean.
func Below(path, folder string) bool {
	_, below := Cut(path, folder)
	return below
}

// Cut gives what of a path lies below a folder: nothing for the folder itself.
func Cut(path, folder string) (rest string, below bool) {
	if path == folder {
		return "", true
	}
	return strings.CutPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
