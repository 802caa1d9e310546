package launch

import (
	"path"

	"claudebox/internal/plan"
)

// layFrom is how many mounts must be over what is there for claudebox to lay
// them itself. To bwrap each costs a look at the table of all mounts, so that
// many cost their square; here each costs some ten microseconds, and all of
// them together that bwrap has to wait once.
const layFrom = 4

// isOver reports whether a mount lies over a file or folder which the sandbox sees
// anyway, at its place outside: it pins it, or makes it read-only, or covers
// it. Such a mount needs nothing of the host but what is inside.
func (m Mount) isOver() bool {
	if path.Join(m.Above.Root, m.Above.Path) != m.Destination {
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

// isReadOnly reports whether nobody inside may write to a mount.
func (m Mount) isReadOnly() bool { return m.Kind != plan.Bind }

// lays reports whether a mount is laid when bwrap has made the others. Those that
// lie below it then are laid with it.
func (l Launch) lays(m Mount) bool { return l.Lay && m.isOver() }

// ByBwrap counts the mounts that bwrap makes.
func (l Launch) ByBwrap() int {
	n := 0
	for _, m := range l.Mounts {
		if !l.lays(m) {
			n++
		}
	}
	return n
}

func worthLaying(list []Mount) bool {
	return len(list)-Launch{Mounts: list, Lay: true}.ByBwrap() >= layFrom
}
