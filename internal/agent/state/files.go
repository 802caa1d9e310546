package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/linux/beneath"
)

// write is one step of Prepare, below the instance's folder.
type write struct {
	rel  string
	what string // for people: "make", "update", "link"
	do   func(dir *beneath.Folder) error
	seen seen // the file whose stamp is to be taken afterwards; without a name: none
}

// fileLimit is what a file of the agent's home may have, in bytes. Claude
// Code's own .claude.json has been seen with some megabytes.
const fileLimit = 64 << 20

// folders notes which folders are missing.
func (in *Instance) folders(dir *beneath.Folder) error {
	want := []string{agentHome, cacheName}
	for _, name := range in.req.Caches {
		want = append(want, path.Join(cacheName, name))
	}
	for _, folder := range in.req.Folders {
		for _, rel := range parents(folder) {
			if !slices.Contains(want, rel) {
				want = append(want, rel)
			}
		}
	}
	for _, rel := range want {
		if dir != nil {
			what, err := dir.Look(rel)
			if err != nil {
				return in.failed("look at "+dir.Join(rel), err)
			}
			if what.Kind == beneath.Dir && what.Perm&privateDir != privateDir {
				in.plan(write{
					rel: rel, what: "open",
					do: func(dir *beneath.Folder) error { return dir.Chmod(rel, privateDir) },
				})
			}
			if what.Kind != beneath.Absent {
				continue
			}
		}
		in.plan(write{
			rel: rel, what: "make",
			do: func(dir *beneath.Folder) error { return dir.Mkdir(rel, privateDir) },
		})
	}
	return nil
}

// parents are a folder and those that it lies in, outermost first.
func parents(folder string) []string {
	var list []string
	for at := folder; at != "."; at = path.Dir(at) {
		list = append([]string{at}, list...)
	}
	return list
}

// plan adds one step.
func (in *Instance) plan(w write) {
	in.writes = append(in.writes, w)
	if in.exists && w.what != "" {
		in.Makes = append(in.Makes, path.Join(in.Dir, w.rel))
	}
}

// files works out which made files are not as they should be.
func (in *Instance) files(dir *beneath.Folder) error {
	key := recordForm + in.req.home().Key() + "\n"
	for _, f := range agenthome.Files {
		if err := in.file(dir, f, key); err != nil {
			return err
		}
	}
	return nil
}

// file does so for one; key is what they are made of beside the user's files.
func (in *Instance) file(dir *beneath.Folder, f agenthome.File, key string) error {
	rel := path.Join(agentHome, f.Name)
	inputs, err := inputs(key, f.Sources(in.req.home()))
	if err != nil {
		return in.failed("look at your own "+f.Name, err)
	}
	var what beneath.Entry
	if dir != nil {
		if what, err = dir.Look(rel); err != nil {
			return in.failed("look at "+dir.Join(rel), err)
		}
		if what.Kind == beneath.Regular && what.Perm&privateFile != privateFile && dir.Chmod(rel, privateFile) == nil {
			what, _ = dir.Look(rel) // one that the agent closed is read all the same
		}
	}
	if was := in.known.file(f.Name); was.Inputs == inputs && was.Output == what.Stamp {
		in.Notes = append(in.Notes, was.Notes...)
		return nil
	}
	return in.remake(dir, f, rel, inputs, what)
}

// remake makes the file's content anew and plans a write if it differs.
func (in *Instance) remake(dir *beneath.Folder, f agenthome.File, rel, inputs string, what beneath.Entry) error {
	var old []byte
	if what.Kind == beneath.Regular {
		old, _ = dir.Read(rel, fileLimit) // one that cannot be read is replaced
	}
	sources, foreign, err := in.req.readSources(f.Sources(in.req.home()))
	if err != nil {
		return in.failed("read your own "+f.Name, err)
	}
	made, err := f.Make(in.req.home(), agenthome.From{Old: old, Given: in.known.file(f.Name).Given, Sources: sources})
	if err != nil {
		return in.failed("make "+f.Name+" for the agent", err)
	}
	notes := slices.Concat(foreign, made.Notes)
	in.Notes = slices.Concat(in.Notes, notes, made.Once)
	w := write{rel: rel, seen: seen{Name: f.Name, Inputs: inputs, Notes: notes, Given: made.Given}}
	w.do = func(*beneath.Folder) error { return nil } // the stamp alone is new
	if made.Content != nil && !bytes.Equal(made.Content, old) {
		w.what = "update"
		w.do = func(dir *beneath.Folder) error {
			if made.Aside {
				if err := aside(dir, rel); err != nil {
					return err
				}
			}
			return replace(dir, rel, made.Content, what.Kind)
		}
	}
	in.plan(w)
	return nil
}

// replace puts a file where an agent may have put something else. A folder is
// kept under another name; anything else is replaced by name.
func replace(dir *beneath.Folder, rel string, content []byte, was beneath.Kind) error {
	if was == beneath.Dir {
		if err := aside(dir, rel); err != nil {
			return err
		}
	}
	return dir.Replace(rel, content, privateFile)
}

// aside renames what an agent put in our place, to the first free name.
func aside(dir *beneath.Folder, rel string) error {
	for n := 1; ; n++ {
		free := fmt.Sprintf("%s.inside-%d", rel, n)
		if what, err := dir.Look(free); err != nil || what.Kind == beneath.Absent {
			return errors.Join(err, dir.Rename(rel, free))
		}
	}
}

// inputs hashes all that a file is made of, without reading it.
func inputs(key string, sources []string) (string, error) {
	text := []byte(key)
	for _, name := range sources {
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			if !missing(err) {
				return "", &fs.PathError{Op: "look at", Path: name, Err: err}
			}
			continue
		}
		text = append(append(text, name...), 0)
		for _, part := range []int64{int64(st.Ino), st.Size, st.Ctim.Nano()} {
			text = append(strconv.AppendInt(text, part, 10), ' ')
		}
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// readSources reads files of the user. Links are followed, for home-manager
// makes them, as far as they are the user's; notes name those that are not.
func (r Request) readSources(names []string) (contents [][]byte, notes []string, err error) {
	contents = make([][]byte, len(names))
	for i, name := range names {
		content, note, err := r.readOwn(name)
		if err != nil {
			return nil, nil, err
		}
		if contents[i] = content; note != "" {
			notes = append(notes, note)
		}
	}
	return contents, notes, nil
}

// missing reports whether a file is not there, unlike one that cannot be read.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
