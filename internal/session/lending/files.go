package lending

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"

	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/project"
)

// Files are files that the user gave by themselves, read-write, by path, with the sum of what they held before the
// session.
type Files map[string][sha256.Size]byte

// fileLimit is the size of the largest such file that is compared, in bytes: what tools obey is small.
const fileLimit = 8 << 20

func sumOf(file string) (sum [sha256.Size]byte, known bool) {
	content, err := smallfile.Read(file, fileLimit)
	return sha256.Sum256(content), err == nil
}

// Given notes the files that a launch gives by themselves, outside of folders.
func Given(mounts []launch.Mount, folders []project.Project) Files {
	files := Files{}
	for _, m := range mounts {
		given := slices.ContainsFunc(folders, func(f project.Project) bool { return pathname.Below(m.Source, f.Path) })
		if m.Kind != plan.Bind || !UserNamed(m) || given {
			continue
		}
		if sum, known := sumOf(m.Source); known {
			files[m.Source] = sum
		}
	}
	return files
}

// Changes are the files that have another content now. By its content, as a file that was only read or touched is not
// changed.
func (f Files) Changes(home string) (list []aftermath.Change) {
	for _, file := range slices.Sorted(maps.Keys(f)) {
		if now, known := sumOf(file); known && now == f[file] {
			continue
		}
		list = append(list, aftermath.Change{
			Path: profile.Tilde(home, file), Change: aftermath.Changed,
			Means: cmp.Or(hostrun.Means(file[1:]), "you gave it read-write: what reads it outside obeys it"),
		})
	}
	return list
}
