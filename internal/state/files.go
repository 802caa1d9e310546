package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"claudebox/internal/beneath"
)

// write is one step of Prepare, below the instance's folder.
type write struct {
	rel  string
	what string // for people: "make", "update", "link"
	do   func(dir *beneath.Folder) error
	file string // name in the agent's home whose stamp is to be taken afterwards
	seen seen   // what is known of that file, without the stamp
}

// madeFile is a file of the agent's home that is made at launch from the
// user's own files and what lies there already.
type madeFile struct {
	name    string
	sources func(r Request) []string // files of the user, by path
	// make gives the new content, nil for none. old is nil when there is no
	// usable file; sources are nil where a file is missing.
	make func(r Request, old []byte, sources [][]byte) (content []byte, notes []string, err error)
}

// madeFiles are all of them.
var madeFiles = []madeFile{
	{".claude.json", hostFiles(".claude.json"), makeAnswers},
	{"settings.json", hostFiles(".claude/settings.json"), makeSettings},
	{"keybindings.json", hostFiles(".claude/keybindings.json"), copyFirst},
	{"CLAUDE.md", memoryFiles, makeMemory},
	{".credentials.json", credentialFiles, makeCredentials},
}

// hostFiles names one file below the user's home.
func hostFiles(name string) func(Request) []string {
	return func(r Request) []string { return []string{path.Join(r.UserHome, name)} }
}

// copyFirst takes the user's file as it is; without one what is there stays.
func copyFirst(_ Request, _ []byte, sources [][]byte) ([]byte, []string, error) {
	return sources[0], nil, nil
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
	for _, rel := range want {
		if dir != nil {
			what, err := dir.Look(rel)
			if err != nil {
				return in.failed("look at "+dir.Join(rel), err)
			}
			if what.Kind != beneath.Absent {
				continue
			}
		}
		in.plan(write{rel: rel, what: "make", do: func(dir *beneath.Folder) error { return dir.Mkdir(rel, privateDir) }})
	}
	return nil
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
	for _, f := range madeFiles {
		if err := in.file(dir, f); err != nil {
			return err
		}
	}
	return nil
}

func (in *Instance) file(dir *beneath.Folder, f madeFile) error {
	rel := path.Join(agentHome, f.name)
	inputs, err := f.inputs(in.req)
	if err != nil {
		return in.failed("look at your own "+f.name, err)
	}
	var what beneath.Entry
	if dir != nil {
		if what, err = dir.Look(rel); err != nil {
			return in.failed("look at "+dir.Join(rel), err)
		}
	}
	if was := in.known.Files[f.name]; was.Inputs == inputs && was.Output == what.Stamp {
		in.Notes = append(in.Notes, was.Notes...)
		return nil
	}
	return in.remake(dir, f, rel, inputs, what)
}

// remake makes the file's content anew and plans a write if it differs.
func (in *Instance) remake(dir *beneath.Folder, f madeFile, rel, inputs string, what beneath.Entry) error {
	var old []byte
	if what.Kind == beneath.Regular {
		old, _ = dir.Read(rel, fileLimit) // one that cannot be read is replaced
	}
	sources, err := readSources(f.sources(in.req))
	if err != nil {
		return in.failed("read your own "+f.name, err)
	}
	content, notes, err := f.make(in.req, old, sources)
	if err != nil {
		return in.failed("make "+f.name+" for the agent", err)
	}
	in.Notes = append(in.Notes, notes...)
	w := write{rel: rel, file: f.name, seen: seen{Inputs: inputs, Notes: notes}}
	w.do = func(*beneath.Folder) error { return nil } // the stamp alone is new
	if content != nil && !bytes.Equal(content, old) {
		w.what = "update"
		w.do = func(dir *beneath.Folder) error { return replace(dir, rel, content, what.Kind) }
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
func (f madeFile) inputs(r Request) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %q %q\n", recordVersion, r.Trusted, approvedSuffix(r.APIKey))
	for _, name := range f.sources(r) {
		info, err := os.Stat(name)
		if err != nil {
			if !missing(err) {
				return "", err
			}
			continue
		}
		st := info.Sys().(*syscall.Stat_t)
		fmt.Fprintf(sum, "%s %d %d %d\n", name, st.Ino, st.Size, st.Ctim.Nano())
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// readSources reads files of the user; links are followed, for home-manager
// makes them.
func readSources(names []string) ([][]byte, error) {
	contents := make([][]byte, len(names))
	for i, name := range names {
		content, err := os.ReadFile(name)
		if err != nil && !missing(err) {
			return nil, err
		}
		contents[i] = slices.Clip(content)
	}
	return contents, nil
}

// missing tells a file that is not there from one that cannot be read.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
