package state

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"slices"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
)

// write is one step of Prepare, below the instance's folder.
type write struct {
	rel   string
	aside bool                            // an existing file at rel is renamed first, and kept
	do    func(dir *beneath.Folder) error // nil: nothing changes but the stamp
	seen  seen                            // to be recorded afterwards with its new stamp; no Name: nothing
}

// apply does one step.
func (w write) apply(dir *beneath.Folder) error {
	if w.do == nil {
		return nil
	}
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

// fileLimit is the size of the largest file that is read, in bytes, of the agent's home and of the user's. Claude
// Code's own .claude.json has been seen with some megabytes.
const fileLimit = 64 << 20

// comparison compares an instance with what it should be, see [compare].
type comparison struct {
	draft
	place
	now *beneath.Folder // the instance's folder; nil: there is none
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

// there looks at what lies at rel in the instance. In a new one everything is absent.
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
	if c.exists && w.do != nil {
		c.Makes = append(c.Makes, path.Join(c.dir, w.rel))
	}
}

// makeFolder adds the step that makes a folder.
func (c *comparison) makeFolder(rel string, aside bool) {
	c.plan(write{rel: rel, aside: aside, do: func(dir *beneath.Folder) error {
		return dir.Mkdir(rel, privateDir)
	}})
}

// folders plans the folders that are missing, and the modes of those that the agent has closed.
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
			c.plan(write{rel: rel, do: func(dir *beneath.Folder) error {
				return dir.Chmod(rel, privateDir)
			}})
		}
	}
	return nil
}

// files plans the writes of those [agenthome.Files] that are not as they should be.
func (c *comparison) files() error {
	key := recordForm + c.req.Request.Key() + "\n" // what they are made of beside the user's files
	for _, f := range agenthome.Files {
		rel := path.Join(agentHome, f.Name)
		inputs := inputs(key, f.Sources(c.req.Request))
		what, err := c.there(rel)
		if err != nil {
			return err
		}
		closed := what.Kind == beneath.Regular && what.Perm&privateFile != privateFile
		if closed && c.now.Chmod(rel, privateFile) == nil {
			what, _ = c.now.Look(rel) // the agent took our right to read it: give it back
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
	if made.Content != nil && !bytes.Equal(made.Content, old) {
		w.aside = made.Aside || what.Kind == beneath.Dir
		w.do = func(dir *beneath.Folder) error { return dir.Replace(rel, made.Content, privateFile) }
	}
	c.plan(w)
	return nil
}

// inputs returns a hash of all that a file is made of: key, and the names and states of sources, which are not read.
func inputs(key string, sources []string) string {
	for _, name := range sources {
		key += name + "\x00" + cachefile.State(name) + "\x00"
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:16]
}

// importRoot is where the user's folders are mounted inside, read-only. They
// cannot be mounted in the agent's home itself: the agent can write there.
const importRoot = "/run/claudebox/import"

// imports plans links in the agent's home to those [agenthome.Folders] that the user has. A link of ours to a folder
// that the user no longer has is removed.
func (c *comparison) imports() error {
	for _, name := range agenthome.Folders {
		real, why, err := c.req.find(path.Join(c.req.UserHome, ".claude", name))
		if why != "" {
			c.Notes = append(c.Notes, "your "+why)
		}
		info, gone := os.Lstat(real)
		enters := err == nil && gone == nil && info.IsDir()
		if enters {
			c.Imports = append(c.Imports, Import{Source: real, Destination: path.Join(importRoot, name)})
		}
		if err := c.importLink(name, enters); err != nil {
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
		c.plan(write{rel: rel, do: func(dir *beneath.Folder) error { return dir.Remove(rel) }})
	case wanted && !ours:
		c.plan(write{rel: rel, aside: what.Kind != beneath.Absent, do: func(dir *beneath.Folder) error {
			return dir.Symlink(text, rel)
		}})
	}
	return nil
}

// ownConversations plans links in the agent's home to the user's conversations, for [Host].
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
		at := path.Join(projectsName, name)
		c.Imports = append(c.Imports, Import{Source: real, Destination: path.Join(importRoot, at), Writable: true})
		if err := c.importLink(at, true); err != nil {
			return err
		}
	}
	return nil
}
