package state

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/identity"
)

// An instance is named by the path of its project. So a project that was moved gets a new one, and its history stays
// where nobody looks: [Moved] finds it, and [Move] gives it to the project.

// folderOf identifies a project's folder, wherever it is moved on its file system; empty: not known.
func folderOf(root string) identity.ID { return identity.At(unix.AT_FDCWD, root) }

// Moved returns the kept instance that was probably this project's before it was moved: that of the same folder, else
// of one with the same name that is no longer there. It returns nothing if the project has an instance already.
func Moved(home, root string) (id, from string) {
	parent, err := beneath.Open(path.Join(beneath.LeadsOrClean(home), instances))
	if err != nil {
		return "", ""
	}
	defer parent.Close()
	if what, err := parent.Look(ID(root)); err != nil || what.Kind != beneath.Absent {
		return "", ""
	}
	names, _ := parent.Names(".", mostInstances)
	own, last := folderOf(root), int64(0)
	for _, name := range names {
		dir, err := parent.Sub(name)
		if err != nil {
			continue
		}
		was := readRecord(dir)
		used, _ := dir.Look(liveName)
		dir.Close()
		old := string(was.Root)
		_, err = os.Lstat(old)
		if old == "" || name != ID(old) || !missing(err) {
			continue
		}
		same := own != "" && was.Folder == own
		if same || path.Base(old) == path.Base(root) && used.Stamp.Change > last {
			id, from, last = name, old, used.Stamp.Change
		}
		if same {
			break
		}
	}
	return id, from
}

// Move gives the instance called id to the project at root, with its conversations and history. One that the project
// has already goes, but for its conversations. It returns where the project was.
func Move(home, id, root string) (from string, err error) {
	home = beneath.LeadsOrClean(home)
	op := "give " + root + " what was kept as " + id
	at := place{dir: path.Join(home, instances, ID(root))}
	at.req.Home = home
	lock, err := at.flock(path.Join(home, instances), unix.LOCK_EX)
	if errors.Is(err, fs.ErrNotExist) {
		return "", diag.Errorf(op, "see `claudebox instance list`", "nothing is kept yet")
	}
	if err != nil {
		return "", err
	}
	defer lock.Close()
	parent, err := beneath.Open(path.Join(home, instances))
	if err != nil {
		return "", diag.Wrap(op, err, "")
	}
	defer parent.Close()
	dir, err := parent.Sub(id)
	if err != nil || id != path.Base(id) {
		return "", diag.Errorf(op, "see `claudebox instance list`", "there is no such instance")
	}
	defer dir.Close()
	claimed, free := claim(dir.Path())
	defer claimed.Close()
	second, alone := claim(at.dir)
	defer second.Close()
	known := readRecord(dir)
	from = string(known.Root)
	switch _, gone := os.Lstat(from); {
	case !free || !alone:
		return "", diag.Wrap(op, ErrLive, "end it first")
	case from == "" || id != ID(from) || !missing(gone):
		return "", diag.Errorf(op, "see `claudebox instance list`", "it is not that of a project that is gone")
	}
	known.Root, known.Folder = []byte(root), folderOf(root)
	err = errors.Join(moveConversations(dir, from, root), moveHistory(dir, from, root),
		at.writeJSON(dir, recordName, known))
	if err == nil {
		err = takeIn(parent, ID(root), dir)
	}
	if err == nil {
		err = parent.Rename(id, ID(root))
	}
	if err != nil {
		return "", diag.Wrap(op, err, "")
	}
	return from, nil
}

// moveConversations gives the folders of conversations the names by which Claude Code finds them at another path.
func moveConversations(dir *beneath.Folder, from, to string) error {
	projects := path.Join(agentHome, projectsName)
	old, now := agenthome.Conversations(from), agenthome.Conversations(to)
	names, err := dir.Names(projects, mostConversations)
	if missing(err) || old == "" || now == "" {
		return nil
	}
	for _, name := range names {
		rest, of := strings.CutPrefix(name, old)
		if !of || rest != "" && rest[0] != '-' {
			continue
		}
		if err := dir.Rename(path.Join(projects, name), path.Join(projects, now+rest)); err != nil {
			return err
		}
	}
	return err
}

// moveHistory has the history of prompts name the other path.
func moveHistory(dir *beneath.Folder, from, to string) error {
	const name = agentHome + "/history.jsonl"
	text, err := dir.Read(name, fileLimit)
	if err != nil {
		return nil // there is none, or none of claudebox's
	}
	field := func(root string) []byte {
		text, _ := json.Marshal(root) // of a string: it cannot fail
		return append([]byte(`"project":`), text...)
	}
	return dir.Rewrite(name, bytes.ReplaceAll(text, field(from), field(to)), privateFile)
}

// takeIn moves the conversations of the instance called id to another, and removes it. There may be none.
func takeIn(parent *beneath.Folder, id string, to *beneath.Folder) error {
	from, err := parent.Sub(id)
	if err != nil {
		if missing(err) {
			err = nil
		}
		return err
	}
	defer from.Close()
	projects := path.Join(agentHome, projectsName)
	folders, _ := from.Names(projects, mostConversations)
	for _, folder := range folders {
		at := path.Join(projects, folder)
		files, _ := from.Names(at, mostConversations) // none of a link, and nobody writes there any more
		if what, err := to.Look(at); err == nil && what.Kind == beneath.Absent {
			_ = to.Mkdir(projects, privateDir) // it may be there
			_ = to.Mkdir(at, privateDir)
		}
		for _, file := range files {
			name := path.Join(at, file)
			if what, err := to.Look(name); err == nil && what.Kind == beneath.Absent {
				if err := os.Rename(from.Join(name), to.Join(name)); err != nil {
					return err
				}
			}
		}
	}
	gone := unfinished + rand.Text()
	if err := parent.Rename(id, gone); err != nil {
		return err
	}
	return beneath.RemoveAll(parent.Join(gone))
}
