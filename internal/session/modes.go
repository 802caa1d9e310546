package session

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// givenMode is the mode of a file or folder that is mounted read-write, as it was
// before the session: the agent can close it to its user, or open it to
// others.
type givenMode struct {
	path string
	fd   int // O_PATH: it stays this file, whatever becomes of its name
	mode uint32
}

// noteModes records the modes of what the launch mounts read-write.
func noteModes(l launch.Launch) (list []givenMode) {
	for _, m := range l.Mounts {
		if m.Kind != plan.Bind {
			continue
		}
		fd, err := unix.Open(m.Source, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // the launch says what is wrong with it
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			unix.Close(fd)
			continue
		}
		list = append(list, givenMode{m.Source, fd, st.Mode & modeBits})
	}
	return list
}

const (
	modeBits    = 0o7777
	ownersBits  = 0o700
	othersWrite = 0o022
)

// mendModes restores the modes of what was closed to its user, or opened for others to write.
func mendModes(list []givenMode, tell io.Writer) {
	for _, was := range list {
		var st unix.Stat_t
		err := unix.Fstat(was.fd, &st)
		closed, opened := was.mode&^st.Mode&ownersBits, st.Mode&^was.mode&othersWrite
		if err == nil && closed|opened != 0 {
			err = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", was.fd), was.mode) // fchmod refuses O_PATH
		}
		if err != nil {
			diag.Print(tell, &diag.Error{
				Op: "give " + was.path + " back its mode", Err: err,
				Remedy: fmt.Sprintf("chmod %o %s", was.mode, was.path),
			})
		}
		unix.Close(was.fd)
	}
}
