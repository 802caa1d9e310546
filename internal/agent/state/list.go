package state

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// Kept is an instance that is kept, as it is found.
type Kept struct {
	ID       string    `json:"id"`
	Dir      string    `json:"dir"`
	Root     string    `json:"root,omitempty"` // canonical root of its project; empty: shared by all, or not known
	Gone     bool      `json:"gone"`           // the project is no longer there
	Live     bool      `json:"live"`           // a session uses it
	LastUsed time.Time `json:"lastUsed"`       // when one began last; zero when not known
	Bytes    int64     `json:"bytes"`          // on disk
	More     bool      `json:"more,omitempty"` // there is more than Bytes, too deep to be counted
}

// List gives the kept instances below CLAUDEBOX_HOME, by id, and notes on what
// lies among them and is none or is damaged. None is no error.
func List(home string) (list []Kept, notes []string, err error) {
	real, err := filepath.EvalSymlinks(home) // the way there is the user's own; below it no link is followed
	var parent *beneath.Folder
	if err == nil {
		parent, err = beneath.Open(filepath.Join(real, instances))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	var names []string
	if err == nil {
		defer parent.Close()
		names, err = parent.Names(".", mostInstances)
		slices.Sort(names)
	}
	if err != nil {
		return nil, nil, &diag.Error{
			Op: "list the instances", Err: err,
			Remedy: "make " + filepath.Join(home, instances) + " a folder that you can read",
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue // being made, or left by a crash
		}
		in, note := describe(parent, name)
		if note != "" {
			notes = append(notes, note)
		}
		if in.ID != "" {
			list = append(list, in)
		}
	}
	return list, notes, nil
}

const mostInstances = 100_000

func describe(parent *beneath.Folder, name string) (Kept, string) {
	dir, err := parent.Sub(name)
	if err != nil {
		return Kept{}, parent.Join(name) + " is no folder, and left alone"
	}
	defer dir.Close()
	in := Kept{
		ID: name, Dir: dir.Path(), Root: readRecord(dir).Root, Live: Live(dir.Path()),
	}
	if info, err := os.Lstat(dir.Join(liveName)); err == nil {
		in.LastUsed = info.ModTime()
	}
	in.Bytes, in.More = size(dir.Path())
	note := ""
	if in.Root == "" && name != string(Shared) {
		note = "the record of " + name + " is damaged: its project is not known until it is used again"
		if in.Root = rediscover(dir, name); in.Root != "" {
			note = "the record of " + name +
				" is damaged, and made anew at its next launch; its project was found by its name"
		}
	}
	if in.Root != "" { // certainly not there, unlike what cannot be looked at
		_, err := os.Lstat(in.Root)
		in.Gone = missing(err)
	}
	return in, note
}

// agentFileLimit bounds what is read of an agent's file, in bytes.
const agentFileLimit = 16 << 20

// rediscover finds the project of an instance among those that the agent says
// it worked in. The agent need not be believed: an instance is named by the
// hash of its project's path.
func rediscover(dir *beneath.Folder, id string) string {
	content, err := dir.Read(agentHome+"/.claude.json", agentFileLimit)
	if err != nil {
		return ""
	}
	var said struct {
		Projects map[string]json.RawMessage `json:"projects"`
	}
	if json.Unmarshal(content, &said) != nil {
		return ""
	}
	for root := range said.Projects {
		if strings.TrimSuffix(id, hostSuffix) == ID(root) {
			return root
		}
	}
	return ""
}

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
