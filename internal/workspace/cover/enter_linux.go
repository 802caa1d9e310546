package cover

import (
	"crypto/rand"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/within"
)

// tries is how often a cover is made before it counts as impossible: an agent
// that is quick enough may remove one before it is mounted. It can write in the
// room meanwhile: the cover has a name that it cannot know before, and is
// mounted by its descriptor, whatever lies under that name by then.
const tries = 20

// over covers a file inside the sandbox of a process: with content, or, if
// that is nil, with itself; in both cases read-only. A folder is covered with
// an empty one, or with itself.
func over(process int, path string, folder bool, content []byte) (err error) {
	for range tries {
		var s within.Script
		target := s.Open(path)
		var mount within.File
		switch {
		case content == nil:
			mount = s.Bind(target)
		case folder:
			s.Furnish()
			mount = s.Bind(s.Open(within.Room))
			s.Clear()
		default:
			s.Furnish()
			mount = s.Made(rand.Text(), content, 0o444, new(unix.Stat_t))
			s.Clear()
		}
		s.ReadOnly(mount)
		s.Lay(mount, target)
		if err = within.Run(process, &s); err == nil {
			break
		}
	}
	return err
}
