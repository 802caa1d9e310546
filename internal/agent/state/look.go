package state

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// write is one step of Prepare, below the instance's folder.
type write struct {
	rel   string
	what  string // for people: "make", "update", "link"; empty: nothing changes
	aside bool   // what lies there is kept under another name first
	do    func(dir *beneath.Folder) error
	seen  seen // the file whose stamp is to be taken afterwards; without a name: none
}

// apply does one step.
func (w write) apply(dir *beneath.Folder) error {
	for n := 1; w.aside; n++ {
		free := fmt.Sprintf("%s.inside-%d", w.rel, n)
		if what, err := dir.Look(free); err != nil {
			return err
		} else if what.Kind == beneath.Absent {
			if err := dir.Rename(w.rel, free); err != nil {
				return err
			}
			break
		}
	}
	return w.do(dir)
}

// fileLimit is what a file of the agent's home may have, in bytes. Claude
// Code's own .claude.json has been seen with some megabytes.
const fileLimit = 64 << 20

// comparison is the work of compare.
type comparison struct {
	draft
	place
	now *beneath.Folder // the instance's; nil: there is none
}

// compare works out what is to be made in dir, which is nil for a new instance.
func compare(at place, dir *beneath.Folder) (draft, error) {
	c := comparison{place: at, now: dir}
	if c.exists = dir != nil; c.exists {
		c.known = readRecord(dir)
	} else {
		c.Makes = append(c.Makes, at.dir)
	}
	for _, step := range []func() error{c.folders, c.files, c.imports, c.ownConversations, c.findLogin} {
		if err := step(); err != nil {
			return draft{}, err
		}
	}
	return c.draft, nil
}

// there is what lies in the instance.
func (c *comparison) there(rel string) (what beneath.Entry, err error) {
	if c.now == nil {
		return what, nil
	}
	if what, err = c.now.Look(rel); err != nil {
		err = c.failed("look at "+c.now.Join(rel), err)
	}
	return what, err
}

// plan adds one step.
func (c *comparison) plan(w write) {
	c.writes = append(c.writes, w)
	if c.exists && w.what != "" {
		c.Makes = append(c.Makes, path.Join(c.dir, w.rel))
	}
}

// makeFolder adds the step that makes a folder.
func (c *comparison) makeFolder(rel string, aside bool) {
	c.plan(write{rel: rel, what: "make", aside: aside, do: func(dir *beneath.Folder) error {
		return dir.Mkdir(rel, privateDir)
	}})
}

// folders notes which folders are missing.
func (c *comparison) folders() error {
	want := []string{agentHome, cacheName}
	for _, name := range c.req.Caches {
		want = append(want, path.Join(cacheName, name))
	}
	for _, folder := range c.req.Folders {
		at := len(want)
		for ; folder != "." && !slices.Contains(want, folder); folder = path.Dir(folder) {
			want = slices.Insert(want, at, folder) // a folder before what lies in it
		}
	}
	for _, rel := range want {
		what, err := c.there(rel)
		switch {
		case err != nil:
			return err
		case what.Kind == beneath.Absent:
			c.makeFolder(rel, false)
		case what.Kind == beneath.Dir && what.Perm&privateDir != privateDir:
			c.plan(write{rel: rel, what: "open", do: func(dir *beneath.Folder) error {
				return dir.Chmod(rel, privateDir)
			}})
		}
	}
	return nil
}

// files works out which made files are not as they should be.
func (c *comparison) files() error {
	key := recordForm + c.req.Request.Key() + "\n" // what they are made of beside the user's files
	for _, f := range agenthome.Files {
		rel := path.Join(agentHome, f.Name)
		inputs, err := inputs(key, f.Sources(c.req.Request))
		if err != nil {
			return c.failed("look at your own "+f.Name, err)
		}
		what, err := c.there(rel)
		if err != nil {
			return err
		}
		closed := what.Kind == beneath.Regular && what.Perm&privateFile != privateFile
		if closed && c.now.Chmod(rel, privateFile) == nil {
			what, _ = c.now.Look(rel) // one that the agent closed is read all the same
		}
		if was := c.known.file(f.Name); was.Inputs == inputs && was.Output == what.Stamp {
			c.Notes = append(c.Notes, was.Notes...)
		} else if err := c.remake(f, rel, inputs, what); err != nil {
			return err
		}
	}
	return nil
}

// remake makes the file's content anew and plans a write if it differs.
func (c *comparison) remake(f agenthome.File, rel, inputs string, what beneath.Entry) error {
	var old []byte
	if what.Kind == beneath.Regular {
		old, _ = c.now.Read(rel, fileLimit) // one that cannot be read is replaced
	}
	var sources [][]byte
	var foreign []string
	for _, name := range f.Sources(c.req.Request) {
		content, why, err := c.req.readOwn(name)
		if err != nil {
			return c.failed("read your own "+f.Name, err)
		}
		if sources = append(sources, content); why != "" {
			foreign = append(foreign, "your "+why)
		}
	}
	made := f.Make(c.req.Request, agenthome.From{Old: old, Given: c.known.file(f.Name).Given, Sources: sources})
	notes := slices.Concat(foreign, made.Notes)
	c.Notes = slices.Concat(c.Notes, notes, made.Once)
	w := write{rel: rel, seen: seen{Name: f.Name, Inputs: inputs, Notes: notes, Given: made.Given}}
	w.do = func(*beneath.Folder) error { return nil } // the stamp alone is new
	if made.Content != nil && !bytes.Equal(made.Content, old) {
		w.what, w.aside = "update", made.Aside || what.Kind == beneath.Dir
		w.do = func(dir *beneath.Folder) error { return dir.Replace(rel, made.Content, privateFile) }
	}
	c.plan(w)
	return nil
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
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16], nil
}

// importRoot is where the user's folders are mounted inside, read-only. They
// cannot be mounted in the agent's home itself: the agent can write there.
const importRoot = "/run/claudebox/import"

// imports links the agent's home to those that the user has. A link of ours
// without a folder behind it goes.
func (c *comparison) imports() error {
	for _, name := range agenthome.Folders {
		real, why, err := c.req.find(path.Join(c.req.UserHome, ".claude", name))
		if why != "" {
			c.Notes = append(c.Notes, "your "+why)
		}
		var st unix.Stat_t
		if err != nil || unix.Lstat(real, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			real = ""
		} else {
			c.Imports = append(c.Imports, Import{Source: real, Destination: path.Join(importRoot, name)})
		}
		if err := c.importLink(name, real != ""); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) importLink(name string, wanted bool) error {
	rel, text := path.Join(agentHome, name), path.Join(importRoot, name)
	what, err := c.there(rel)
	if err != nil {
		return err
	}
	ours := false
	if what.Kind == beneath.Link {
		there, _ := c.now.Readlink(rel)
		ours = there == text
	}
	switch {
	case ours && !wanted:
		c.plan(write{rel: rel, what: "remove", do: func(dir *beneath.Folder) error { return dir.Remove(rel) }})
	case wanted && !ours:
		c.plan(write{rel: rel, what: "link", aside: what.Kind != beneath.Absent, do: func(dir *beneath.Folder) error {
			return dir.Symlink(text, rel)
		}})
	}
	return nil
}

// ownConversations links the agent's home to the user's conversations.
func (c *comparison) ownConversations() error {
	if c.req.Kind != Host {
		return nil
	}
	projects := path.Join(agentHome, projectsName)
	if what, err := c.there(projects); err != nil {
		return err
	} else if what.Kind != beneath.Dir {
		c.makeFolder(projects, what.Kind != beneath.Absent)
	}
	for _, folder := range c.req.Trusted {
		name := agenthome.Conversations(folder)
		if name == "" {
			return diag.Errorf("find your conversations of "+folder, "use `state: project`",
				"the path is longer than `state: host` can serve")
		}
		real, err := c.req.ownOrNew(path.Join(c.req.UserHome, ".claude", projectsName, name))
		if err != nil {
			return &diag.Error{Op: "find your conversations of " + folder, Err: err, Remedy: "use `state: project`"}
		}
		c.conversations = append(c.conversations, real)
		at := path.Join(projectsName, name)
		c.Imports = append(c.Imports, Import{Source: real, Destination: path.Join(importRoot, at), Writable: true})
		if err := c.importLink(at, true); err != nil {
			return err
		}
	}
	return nil
}
