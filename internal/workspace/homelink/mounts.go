package homelink

import (
	"path"
	"slices"
	"strings"

	"claudebox/internal/linux/pathname"
)

// mount is a line of /proc/self/mountinfo: what lies at root in a file system is seen at point.
type mount struct{ device, root, point string }

// parseMounts reads /proc/self/mountinfo (proc_pid_mountinfo(5)).
func parseMounts(mountinfo string) (list []mount) {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 {
			list = append(list, mount{fields[2], unescape(fields[3]), unescape(fields[4])})
		}
	}
	return list
}

// unescape undoes the octal escapes of blanks and backslashes.
func unescape(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(text)
}

// bound returns what is seen in the home, or in a folder of PATH, and at another path, too, by a bind mount. Either of
// the two may be the mount.
func (q Question) bound(mountinfo string) (links []Link) {
	all := parseMounts(mountinfo)
	for i, m := range all {
		for j, n := range all {
			rest, below := pathname.Cut(m.root, n.root)
			if i == j || m.device != n.device || !below {
				continue
			}
			other := path.Join(n.point, rest)
			for _, pair := range [][2]string{{m.point, other}, {other, m.point}} {
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
	if at == q.Home || slices.ContainsFunc(q.Folders, func(dir string) bool { return pathname.Below(at, dir) }) {
		return true
	}
	rest, below := pathname.Cut(at, q.Home)
	name, _, _ := strings.Cut(rest, "/")
	return below && (name == ".claude" || name == ".config" || name == ".local" || name == ".var" ||
		place{}.counts(name) && !slices.Contains(passedOver, name))
}
