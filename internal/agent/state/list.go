package state

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/object"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// Kept describes an instance that is kept, as it was found.
type Kept struct {
	ID       string    `json:"id"`
	Dir      string    `json:"dir"`
	Root     string    `json:"root,omitempty"` // canonical root of its project; empty: shared by all, or not known
	Gone     bool      `json:"gone"`           // the project is no longer there
	Live     bool      `json:"live"`           // a session uses it
	LastUsed time.Time `json:"lastUsed"`       // when a session began last; zero: not known
	Bytes    int64     `json:"bytes"`          // on disk
	More     bool      `json:"more,omitempty"` // there is more than Bytes: something could not be counted
}

// List returns the kept instances below home (CLAUDEBOX_HOME) by id, and notes on entries that are no instance or are
// damaged. If there are no instances it returns nil and no error.
func List(home string) (list []Kept, notes []string, err error) {
	failed := func(err error) error {
		remedy := "make " + filepath.Join(home, instances) + " a folder that you can read"
		return &diag.Error{Op: "list the instances", Err: err, Remedy: remedy}
	}
	parent, err := beneath.Open(filepath.Join(beneath.LeadsOrClean(home), instances)) // follows no link below home
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, failed(err)
	}
	defer parent.Close()
	names, err := parent.Names(".", mostInstances)
	if err != nil {
		return nil, nil, failed(err)
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue // an instance being made, or left by a crash
		}
		kept, note := describe(parent, name)
		if note != "" {
			notes = append(notes, note)
		}
		if kept.ID != "" {
			list = append(list, kept)
		}
	}
	return list, notes, nil
}

const mostInstances = 100_000

func describe(parent *beneath.Folder, name string) (kept Kept, note string) {
	dir, err := parent.Sub(name)
	if err != nil {
		return Kept{}, parent.Join(name) + " is no folder, and left alone"
	}
	defer dir.Close()
	kept = Kept{ID: name, Dir: dir.Path(), Root: string(readRecord(dir).Root), Live: Live(dir.Path())}
	if info, err := os.Lstat(dir.Join(liveName)); err == nil {
		kept.LastUsed = info.ModTime()
	}
	kept.Bytes, kept.More = size(dir)
	if kept.Root == "" && name != string(Shared) { // the shared one has no project
		note = "the record of " + name + " is damaged: its project is not known until it is used again"
		if kept.Root = rediscover(dir, name); kept.Root != "" {
			note = "the record of " + name +
				" is damaged, and made anew at its next launch; its project was found by its name"
		}
	}
	if kept.Root != "" { // a project that cannot be looked at is not gone
		_, err := os.Lstat(kept.Root)
		kept.Gone = missing(err)
	}
	return kept, note
}

// agentFileLimit is the size of the largest file of an agent's that is read, in bytes.
const agentFileLimit = 16 << 20

// rediscover finds the project of an instance among those that the agent says it worked in; empty: it is not among
// them. The agent need not be believed: an instance is named by the hash of its project's path.
func rediscover(dir *beneath.Folder, id string) string {
	content, err := dir.Read(agentHome+"/.claude.json", agentFileLimit)
	if err != nil {
		return ""
	}
	for root := range object.Parse(object.Parse(content)["projects"]) {
		if strings.TrimSuffix(id, hostSuffix) == ID(root) {
			return root
		}
	}
	return ""
}

// deepest is how many levels of folders are counted.
const deepest = 200

// blockSize is the unit of st_blocks, in bytes (stat(2)).
const blockSize = 512

type inode struct{ dev, ino uint64 }

// size returns the disk space that a folder takes, in bytes; more: something in it could not be counted. A file with
// several names counts once.
func size(dir *beneath.Folder) (bytes int64, more bool) {
	counted := map[inode]bool{} // of files with several names
	err := walk(dir, deepest, func(in *beneath.Folder, name string, what beneath.Entry) error {
		var st unix.Stat_t
		if unix.Fstatat(in.FD(), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return nil // gone meanwhile
		}
		if at := (inode{st.Dev, st.Ino}); what.Names > 1 && what.Kind != beneath.Dir {
			if counted[at] {
				return nil
			}
			counted[at] = true
		}
		bytes += st.Blocks * blockSize
		return nil
	})
	return bytes, err != nil
}

// mostNames bounds how many names of one folder are looked at: an agent can make any number.
const mostNames = 1 << 20

// walk calls visit for everything below dir, for a folder before what is in it. It follows no link. It goes depth
// levels deep, as every level keeps a descriptor open, and fails with [beneath.ErrTooLarge] below that. An error does
// not end the walk: the first one is returned at its end. If visit fails for a folder, what is in it is left out.
func walk(
	dir *beneath.Folder, depth int, visit func(in *beneath.Folder, name string, what beneath.Entry) error,
) (fault error) {
	if depth < 0 {
		return beneath.ErrTooLarge
	}
	names, err := dir.Names(".", mostNames)
	if err != nil {
		return err
	}
	for _, name := range names {
		what, err := dir.Look(name)
		if err == nil {
			err = visit(dir, name, what)
		}
		if err == nil && what.Kind == beneath.Dir {
			var sub *beneath.Folder
			if sub, err = dir.Sub(name); err == nil {
				err = walk(sub, depth-1, visit)
				sub.Close()
			}
		}
		fault = cmp.Or(fault, err)
	}
	return fault
}
