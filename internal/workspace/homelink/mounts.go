package homelink

import (
	"path"
	"strings"

	"claudebox/internal/linux/mountinfo"
	"claudebox/internal/linux/pathname"
)

// bound returns what is seen in the home, or in a folder of PATH, and at another path, too, by a bind mount. Either of
// the two may be the mount.
func (q Question) bound(all []mountinfo.Mount) (links []Link) {
	for i, m := range all {
		for j, n := range all {
			rest, below := pathname.Cut(m.Root, n.Root)
			if i == j || m.Device != n.Device || !below {
				continue
			}
			other := path.Join(n.Point, rest)
			for _, pair := range [][2]string{{m.Point, other}, {other, m.Point}} {
				if pair[0] != pair[1] && q.counts(pair[0]) {
					links = append(links, Link{Path: pair[0], Leads: pair[1]})
				}
			}
		}
	}
	return links
}

// counts reports whether a path is one at which tools look, or holds all of them.
func (q Question) counts(at string) bool {
	if at == q.Home || pathname.BelowAny(at, q.Folders) {
		return true
	}
	rest, below := pathname.Cut(at, q.Home)
	name, _, _ := strings.Cut(rest, "/")
	return below && (name == ".claude" || name == ".config" || name == ".local" || name == ".var" ||
		counts(name) && enters("", name))
}
