package agent

import (
	"slices"
	"strings"

	"claudebox/internal/linux/pathname"
)

// Mount is a file or folder of the host that the sandbox must show besides its plan, always read-only.
type Mount struct {
	Source      string // path on the host, free of links; for a Link, its text
	Destination string
	Link        bool // make a symbolic link at Destination, mount nothing
}

// libraryFolders are where distributions keep loaders and libraries. On most of them the first two are links to the
// next two. Debian's node keeps parts of itself, and npm, in the last folder, and aborts without them.
var libraryFolders = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/nodejs"}

// mountLibraries mounts the host's library folders.
func (f *finder) mountLibraries() {
	f.made.Libraries = true
	for _, folder := range libraryFolders {
		end, err := f.follow(folder)
		if err != nil || !end.info.IsDir() {
			continue
		}
		mount := Mount{Source: end.name, Destination: folder}
		if folder != end.name && slices.Contains(libraryFolders, end.name) {
			mount.Source, mount.Link = strings.TrimPrefix(end.name, "/"), true // a relative link, as on the host
		}
		f.mount(mount)
	}
}

// isInside reports whether name is there inside already: in the store, or mounted at its own path.
func (f *finder) isInside(name string) bool {
	return inStore(name) || slices.ContainsFunc(f.made.Mounts, func(m Mount) bool {
		return !m.Link && m.Source == m.Destination && pathname.Below(name, m.Destination)
	})
}

// outermost sorts mounts, in place, by destination. It returns them without those that lie in another mount, where
// bwrap could make no mount point.
func outermost(mounts []Mount) (kept []Mount) {
	slices.SortStableFunc(mounts, func(a, b Mount) int { return strings.Compare(a.Destination, b.Destination) })
	for _, m := range mounts {
		if !slices.ContainsFunc(kept, func(o Mount) bool { return pathname.Below(m.Destination, o.Destination) }) {
			kept = append(kept, m)
		}
	}
	return kept
}
