package state

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/cachefile"
)

// step is one change that [Instance.Prepare] makes at a path below the instance's folder.
type step struct {
	rel    string
	aside  bool                            // an existing file at rel is renamed first, and kept
	do     func(dir *beneath.Folder) error // nil: the file is right, only its record is not
	file   string                          // one of [agenthome.Files]; its record is stored afterwards; empty: none is
	record fileRecord                      // without the file's stamp
}

// apply makes the change.
func (s step) apply(dir *beneath.Folder) error {
	if s.do == nil {
		return nil
	}
	if s.aside {
		if err := moveAside(dir, s.rel); err != nil {
			return err
		}
	}
	return s.do(dir)
}

// moveAside renames a file to the first free one of its names NAME.inside-1, NAME.inside-2 and so on.
func moveAside(dir *beneath.Folder, rel string) error {
	for n := 1; ; n++ {
		free := fmt.Sprintf("%s.inside-%d", rel, n)
		if what, err := dir.Look(free); err != nil {
			return err
		} else if what.Kind == beneath.Absent {
			return dir.Rename(rel, free)
		}
	}
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
	if dir != nil {
		c.exists, c.known = true, readRecord(dir)
	} else {
		c.Makes = append(c.Makes, at.dir)
	}
	for _, part := range []func() error{c.folders, c.files, c.imports, c.namedFiles, c.ownConversations, c.findLogin} {
		if err := part(); err != nil {
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

// add adds a step to what Prepare will do.
func (c *comparison) add(s step) {
	c.steps = append(c.steps, s)
	if c.exists && s.do != nil {
		c.Makes = append(c.Makes, path.Join(c.dir, s.rel))
	}
}

// makeFolder adds the step that makes a folder.
func (c *comparison) makeFolder(rel string, aside bool) {
	c.add(step{rel: rel, aside: aside, do: func(dir *beneath.Folder) error {
		return dir.Mkdir(rel, privateDir)
	}})
}

// folders adds steps for folders that are missing, and for those whose mode keeps the user out.
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
			c.add(step{rel: rel, do: func(dir *beneath.Folder) error {
				return dir.Chmod(rel, privateDir)
			}})
		}
	}
	return nil
}

// files adds steps for those [agenthome.Files] that are not as they should be.
func (c *comparison) files() error {
	if c.req.Later {
		return nil
	}
	for _, f := range c.req.Files() {
		if err := c.file(f); err != nil {
			return err
		}
	}
	return nil
}

// file adds a step if one of [agenthome.Files] is not as it should be.
func (c *comparison) file(f agenthome.File) error {
	rel := path.Join(agentHome, f.Name)
	inputs := hashInputs(recordForm+c.req.Request.Key()+"\n", f.Sources(c.req.Request))
	what, err := c.there(rel)
	if err != nil {
		return err
	}
	closed := what.Kind == beneath.Regular && what.Perm&privateFile != privateFile
	if closed && c.now.Chmod(rel, privateFile) == nil {
		what, _ = c.now.Look(rel) // the agent took our right to read it, and it is read below
	}
	was := c.known.Files[f.Name]
	if was.Inputs == inputs && was.Output == what.Stamp && c.req.answersAs(was.Asked) {
		c.say(f, was.Notes, was.Left)
		return nil
	}
	return c.remake(f, rel, inputs, what)
}

// remake makes the file's content anew and adds a step that writes it if it differs.
func (c *comparison) remake(f agenthome.File, rel, inputs string, what beneath.Entry) error {
	var old []byte
	if what.Kind == beneath.Regular {
		old, _ = c.now.Read(rel, fileLimit) // one that cannot be read is replaced
	}
	var sources [][]byte
	var foreign []diag.Left
	for _, name := range f.Sources(c.req.Request) {
		content, why, err := c.req.readOwn(name)
		if err != nil {
			return diag.Wrap("read your own "+name, err,
				"make it readable for you (chmod u+r "+name+"), or move it away")
		}
		sources = append(sources, content)
		if why != "" {
			foreign = append(foreign, diag.Left{Kind: "file", Text: "your " + why})
		}
	}
	asking, asked := c.req.Request, map[string]string{}
	asking.Runs, asking.Sees = noted(asking.Runs, asked, askedRuns), noted(asking.Sees, asked, askedSees)
	asking.Keyed = noted(asking.Keyed, asked, askedKeyed)
	asking.Reaches = noted(asking.Reaches, asked, askedReaches)
	made := f.Make(asking, agenthome.From{Old: old, Given: c.known.Files[f.Name].Given, Sources: sources})
	left := slices.Concat(foreign, made.Left)
	c.say(f, slices.Concat(made.Notes, made.Once), left)
	s := step{rel: rel, file: f.Name, record: fileRecord{
		Inputs: inputs, Asked: asked, Left: left, Notes: made.Notes, Given: made.Given,
	}}
	if made.Content != nil && !bytes.Equal(made.Content, old) {
		s.aside = made.Aside || what.Kind == beneath.Dir
		s.do = func(dir *beneath.Folder) error { return dir.Replace(rel, made.Content, privateFile) }
	}
	c.add(s)
	return nil
}

// say tells what is to be said of a file. Who uses another agent misses nothing of Claude Code's.
func (c *comparison) say(f agenthome.File, notes []string, left []diag.Left) {
	if c.req.Other == "" || strings.HasPrefix(f.Name, agenthome.Beside) {
		c.Notes, c.Left = append(c.Notes, notes...), append(c.Left, left...)
	}
}

// These begin the name of a question in [fileRecord.Asked].
const askedRuns, askedSees, askedKeyed, askedReaches = "runs ", "sees ", "keyed ", "reaches "

// noted returns a function that asks about, and notes the answer in asked.
func noted(about func(string) string, asked map[string]string, kind string) func(string) string {
	if about == nil {
		return nil
	}
	return func(word string) string {
		answer := about(word)
		asked[kind+word] = answer
		return answer
	}
}

// answersAs reports whether all that was asked before is answered as it was.
func (r Request) answersAs(asked map[string]string) bool {
	all := map[string]func(string) string{
		askedRuns: r.Runs, askedSees: r.Sees, askedKeyed: r.Keyed, askedReaches: r.Reaches,
	}
	for question, answer := range asked {
		kind, word, _ := strings.Cut(question, " ")
		about := all[kind+" "]
		if about != nil && about(word) != answer {
			return false
		}
	}
	return true
}

// recordForm changes when files are made in another way, so that all are made anew.
const recordForm = "claudebox instance 10\n"

// hashInputs returns a hash of all that a file is made of: key, and the names and states (not contents) of sources.
func hashInputs(key string, sources []string) string {
	for _, name := range sources {
		key += name + "\x00" + cachefile.SettledState(name) + "\x00"
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:16]
}

// importRoot is where the user's folders are mounted inside, read-only. They
// cannot be mounted in the agent's home itself: the agent can write there.
const importRoot = "/run/claudebox/import"

// imports adds steps for links in the agent's home to those folders that the user has, and for removing our links to
// the others.
func (c *comparison) imports() error {
	for _, folder := range c.req.OwnFolders() {
		to := folder.Own
		if folder.Name != "" {
			to = path.Join(importRoot, strings.TrimPrefix(folder.Name, agenthome.Beside))
		}
		real, why, err := c.req.find(folder.Own)
		if why != "" {
			c.Left = append(c.Left, diag.Left{Kind: "folder", Text: "your " + why})
		}
		info, fault := os.Lstat(real) // real is empty if the user has none, or it does not enter
		enters := err == nil && fault == nil && info.IsDir()
		if enters {
			c.Imports = append(c.Imports, Import{
				Source: real, Own: folder.Own, Kind: folder.Kind, Destination: to, At: folder.Name,
			})
		}
		if folder.Name == "" {
			continue
		}
		if err := c.importLink(folder.Name, to, enters); err != nil {
			return err
		}
	}
	return nil
}

// importLink adds the step that makes a link with this text in the agent's home, or removes it if it is not wanted.
func (c *comparison) importLink(name, text string, wanted bool) error {
	rel := path.Join(agentHome, name)
	what, err := c.there(rel)
	if err != nil {
		return err
	}
	there := ""
	if what.Kind == beneath.Link {
		there, _ = c.now.Readlink(rel)
	}
	switch ours := there == text; {
	case ours && !wanted:
		c.add(step{rel: rel, do: func(dir *beneath.Folder) error { return dir.Remove(rel) }})
	case wanted && !ours:
		c.add(step{rel: rel, aside: what.Kind != beneath.Absent, do: func(dir *beneath.Folder) error {
			return dir.Symlink(text, rel)
		}})
	}
	return nil
}

// ownConversations adds steps for links in the agent's home to the user's conversations, for [Host].
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
		real, err := c.req.ownOrNew(c.req.Own(path.Join(projectsName, name)))
		if err != nil {
			return &diag.Error{Op: "find your conversations of " + folder, Err: err, Remedy: "use `state: project`"}
		}
		other, err := sharer(real, folder)
		if other != "" {
			err = errors.New("those of " + other + " lie in the same folder")
		}
		if err != nil {
			return &diag.Error{Op: "find your conversations of " + folder, Err: err, Remedy: "use `state: project`"}
		}
		at := path.Join(projectsName, name)
		to := path.Join(importRoot, at)
		c.Imports = append(c.Imports, Import{Source: real, Destination: to, At: at, Writable: true})
		if err := c.importLink(at, to, true); err != nil {
			return err
		}
	}
	return nil
}
