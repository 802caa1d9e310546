package agent

import (
	"io/fs"
	"slices"
	"strings"

	"claudebox/internal/plan"
)

// libraryFolders are where distributions keep loaders and libraries. On most
// the first two are links to the others.
var libraryFolders = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64"}

func readOnly(source, destination, why string) plan.Mount {
	return plan.Mount{Kind: plan.ROBind, Source: source, Destination: destination, Why: why}
}

// mountLibraries mounts the host's library folders, links as links.
func (f *finder) mountLibraries() {
	if f.libraries {
		return
	}
	f.libraries = true
	const why = "loader and libraries of the agent's program"
	var names []string
	for _, folder := range libraryFolders {
		info, err := f.Files.Lstat(folder)
		if err != nil {
			continue
		}
		names = append(names, folder)
		if info.Mode()&fs.ModeSymlink == 0 {
			f.mounts = append(f.mounts, readOnly(folder, folder, why))
			continue
		}
		f.mounts = append(f.mounts, f.linked(folder, why))
	}
	f.notes = append(f.notes, "its libraries are the host's: "+strings.Join(names, ", ")+" are visible, read-only")
}

// linked is a library folder that is a link: the same link inside when it
// leads to another of them, else what is at its end.
func (f *finder) linked(folder, why string) plan.Mount {
	end, err := f.follow(folder)
	if err == nil && !slices.Contains(libraryFolders, end.name) {
		return readOnly(end.name, folder, why)
	}
	return plan.Mount{Kind: plan.Symlink, Source: strings.TrimPrefix(end.name, "/"), Destination: folder, Why: why}
}

// covers tells whether what is mounted already shows name at its own place.
func (f *finder) covers(name string) bool {
	return inStore(name) || slices.ContainsFunc(f.mounts, func(m plan.Mount) bool {
		return m.Kind == plan.ROBind && m.Source == m.Destination && within(name, m.Destination)
	})
}

// needed sorts the mounts by destination and leaves out what lies in another
// of them, because bwrap could make no mount point there.
func needed(mounts []plan.Mount) []plan.Mount {
	slices.SortStableFunc(mounts, func(a, b plan.Mount) int { return strings.Compare(a.Destination, b.Destination) })
	var list []plan.Mount
	for _, m := range mounts {
		if !slices.ContainsFunc(list, func(above plan.Mount) bool { return within(m.Destination, above.Destination) }) {
			list = append(list, m)
		}
	}
	return list
}
