package cover

import (
	"crypto/rand"

	"claudebox/internal/within"
)

// room is a folder of every sandbox over which a file system is mounted for a
// moment, to make a cover in: a file cannot be mounted before it lies
// somewhere. What is in it is gone for some hundred microseconds. The agent may
// write there meanwhile: the cover has a name that it cannot know before, and
// is mounted by its descriptor, whatever lies under that name by then.
const room = "/run/user"

// tries is how often a cover is made before it counts as impossible: an agent
// that is quick enough may remove one before it is mounted.
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
			s.Memory(room)
			mount = s.Bind(s.Open(room))
			s.Unmount(room)
		default:
			s.Memory(room)
			mount = s.Bind(s.Make(room+"/"+rand.Text(), content, 0o444))
			s.Unmount(room)
		}
		s.ReadOnly(mount)
		s.Lay(mount, target)
		if err = within.Run(process, &s); err == nil {
			break
		}
	}
	return err
}
