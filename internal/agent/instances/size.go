package instances

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// deepest is how many folders in each other are counted: each costs an open
// file, and an agent can make any number.
const deepest = 200

// blockSize is the unit of st_blocks, in bytes (stat(2)).
const blockSize = 512

// size is what a folder takes on disk, in bytes; more: something in
// it could not be counted. A file with several names counts once.
func size(folder string) (bytes int64, more bool) {
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, true
	}
	c := counter{counted: map[inode]bool{}}
	c.folder(os.NewFile(uintptr(fd), folder), 0)
	return c.bytes, c.more
}

type inode struct{ dev, ino uint64 }

type counter struct {
	bytes   int64
	more    bool
	counted map[inode]bool // of files with several names
}

// folder counts what lies in an open folder, and closes it.
func (c *counter) folder(f *os.File, depth int) {
	defer f.Close()
	for {
		names, err := f.Readdirnames(1000)
		for _, name := range names {
			c.entry(int(f.Fd()), name, depth)
		}
		if err != nil {
			c.more = c.more || !errors.Is(err, io.EOF)
			return
		}
	}
}

func (c *counter) entry(parent int, name string, depth int) {
	var st unix.Stat_t
	if unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return // gone meanwhile
	}
	isFolder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if at := (inode{st.Dev, st.Ino}); st.Nlink > 1 && !isFolder {
		if c.counted[at] {
			return
		}
		c.counted[at] = true
	}
	c.bytes += st.Blocks * blockSize
	if !isFolder {
		return
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil || depth >= deepest {
		c.more = true
		unix.Close(fd)
		return
	}
	c.folder(os.NewFile(uintptr(fd), name), depth+1)
}
