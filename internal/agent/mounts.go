package agent

import (
	"slices"
	"strings"

	"claudebox/internal/linux/pathname"
)

// Mount is what a sandbox must show of the host besides its plan, always
// read-only.
type Mount struct {
	Source      string // path on the host, free of links; the text of a Link
	Destination string
	Link        bool   // a link is made, nothing is mounted
	Why         string // for the audit
}

// libraryFolders are where distributions keep loaders and libraries. On most
// the first two are links to the others. Debian's node has parts of itself, and
// npm, in the last, and aborts without.
var libraryFolders = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/nodejs"}

func readOnly(source, destination, why string) Mount {
	return Mount{Source: source, Destination: destination, Why: why}
}

// mountLibraries mounts the host's library folders.
func (f *finder) mountLibraries() {
	if f.libraries {
		return
	}
	f.libraries = true
	for _, folder := range libraryFolders {
		end, err := f.follow(folder)
		if err != nil || !end.info.IsDir() {
			continue
		}
		mount := readOnly(end.name, folder, "loader and libraries of the agent's program")
		if folder != end.name && slices.Contains(libraryFolders, end.name) {
			mount.Source, mount.Link = strings.TrimPrefix(end.name, "/"), true // the same link leads to another of them
		}
		f.mounts = append(f.mounts, mount)
	}
	if last := len(f.notes) - 1; last >= 0 && strings.HasSuffix(f.notes[last], hostsOwn) {
		f.notes[last] += ", with its libraries"
	} else {
		f.notes = append(f.notes, "the agent's libraries are the host's")
	}
}

// covers reports whether what is mounted already shows name at its own place.
func (f *finder) covers(name string) bool {
	return inStore(name) || slices.ContainsFunc(f.mounts, func(m Mount) bool {
		return !m.Link && m.Source == m.Destination && pathname.Below(name, m.Destination)
	})
}
