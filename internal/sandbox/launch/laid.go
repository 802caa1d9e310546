package launch

import (
	"path"

	"claudebox/internal/plan"
)

// coversFile reports whether a mount lies over a file or folder that the sandbox sees
// anyway, at the same path as on the host. Such a mount pins the file, makes it
// read-only, or covers it with a made file. It can be made inside the sandbox, as it
// needs nothing else from the host.
func (m Mount) coversFile() bool {
	if path.Join(m.Point.Root, m.Point.Path) != m.Destination {
		return false
	}
	switch m.Kind {
	case plan.Bind, plan.ROBind:
		return m.Open && m.Source == m.Destination && m.Follows == ""
	case plan.ROData:
		return true
	}
	return false
}

// isReadOnly reports whether a mount must be read-only inside.
func (m Mount) isReadOnly() bool { return m.Kind != plan.Bind }

// lays reports whether claudebox makes a mount itself, after bwrap made the others.
// What bwrap mounted below it by then is carried over. bwrap reads the table of all
// mounts for each mount, so its cost grows with the square of their number.
func (l Launch) lays(m Mount) bool { return !l.alone && m.coversFile() }

// ByBwrap returns the number of mounts that bwrap makes.
func (l Launch) ByBwrap() int {
	n := 0
	for _, m := range l.Mounts {
		if !l.lays(m) {
			n++
		}
	}
	return n
}
