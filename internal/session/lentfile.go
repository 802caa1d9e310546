package session

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"claudebox/internal/linux/pathname"
	"claudebox/internal/linux/smallfile"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/session/guarded"
	"claudebox/internal/session/lending"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/hostrun"
)

// lentFile is a file that the user gave by itself, read-write, with its content before the session.
type lentFile struct {
	path string
	sum  [sha256.Size]byte
}

// lentLimit is the size of the largest such file that is compared, in bytes: what tools obey is small.
const lentLimit = 8 << 20

func sumOf(file string) (sum [sha256.Size]byte, known bool) {
	content, err := smallfile.Read(file, lentLimit)
	return sha256.Sum256(content), err == nil
}

// noteLent notes the files that the launch gives by themselves, outside the folders that the agent may change.
func (r *running) noteLent() (list []lentFile) {
	for _, m := range r.Launch.Mounts {
		given := slices.ContainsFunc(r.given, func(f guarded.Folder) bool { return pathname.Below(m.Source, f.Path) })
		if m.Kind != plan.Bind || !lending.UserNamed(m) || given {
			continue
		}
		if sum, known := sumOf(m.Source); known {
			list = append(list, lentFile{m.Source, sum})
		}
	}
	return list
}

// tellLent adds to the first report the files of a list that have another content now. By its content, as a file that
// was only read or touched is not changed.
func (r *running) tellLent(list []lentFile) {
	for _, was := range list {
		if now, known := sumOf(was.path); len(r.reports) == 0 || known && now == was.sum {
			continue
		}
		means := cmp.Or(hostrun.Means(was.path[1:]), "you gave it read-write: what reads it outside obeys it")
		r.reports[0].Changes = append(r.reports[0].Changes, aftermath.Change{
			Path: profile.Tilde(r.Facts.Home, was.path), Change: aftermath.Changed, Means: means,
		})
	}
}
