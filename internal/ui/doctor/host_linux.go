package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// Room that is needed in the folder of the agents' homes. A launch writes a
// few files; a day's work of an agent writes tens of megabytes.
const (
	leastRoom  = 1 << 20   // bytes
	enoughRoom = 256 << 20 // bytes
	leastFiles = 64
)

// homes looks whether an agent's home can be made, or written in.
func homes(e examination) Finding {
	folder, err := existing(e.AgentHomes)
	if err == nil {
		err = unix.Faccessat(unix.AT_FDCWD, folder, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	}
	remedy := "make " + folder + " writable for you, or set CLAUDEBOX_HOME to a folder that is"
	if err != nil {
		return failed("nothing can be written in "+folder+": "+err.Error(), remedy)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return failed("look at the disk of "+folder+": "+err.Error(), remedy)
	}
	left := room{bytes: disk.Bavail * uint64(disk.Bsize), files: disk.Ffree, counts: disk.Files > 0}
	return judgeRoom(e.AgentHomes, left)
}

// existing returns path, or the nearest folder above it that is there.
func existing(path string) (string, error) {
	for {
		info, err := os.Stat(path)
		switch {
		case err == nil && !info.IsDir():
			return path, unix.ENOTDIR
		case err == nil || !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path):
			return path, diag.Cause(err)
		}
		path = filepath.Dir(path)
	}
}

// room is what is left of a disk.
type room struct {
	bytes, files uint64
	counts       bool // the number of files is limited
}

func judgeRoom(home string, left room) Finding {
	remedy := "free some space on the disk of " + home + ", or set CLAUDEBOX_HOME to a folder on another"
	size := fmt.Sprintf("%d MiB", left.bytes>>20)
	switch {
	case left.bytes < leastRoom:
		return failed("the disk of "+home+" is full", remedy)
	case left.counts && left.files < leastFiles:
		return failed("the disk of "+home+" can hold no more files", remedy)
	case left.bytes < enoughRoom:
		return warning("only "+size+" are left for "+home, remedy)
	}
	return ok(home + " can be written, " + size + " are left")
}

// terminal is where a launch asks for confirmation.
func terminal(e examination) Finding {
	if !e.Asks {
		return ok("none is needed: no question will be asked")
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return warning("there is none here: a launch could not ask, and would not start",
			"pass `--yes`, or set `confirm: never` in a profile of your own")
	}
	tty.Close()
	return ok("there is one to ask on")
}
