package state

import (
	"errors"
	"os"
	"path"
	"slices"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"golang.org/x/sys/unix"
)

// With [Host] the agent works in the user's own conversations of this project
// (STATE-03): their folder is mounted read-write beside the agent's home, and
// a link leads there. The history of prompts is a copy, as it holds those of
// all projects; what is new in it is given back at the end. Nothing else of
// ~/.claude can be written.

const projectsName = "projects"

// conversations links the agent's home to the user's conversations.
func (in *Instance) conversations(dir *beneath.Folder) error {
	if in.req.Kind != Host {
		return nil
	}
	if err := in.needFolder(dir, path.Join(agentHome, projectsName)); err != nil {
		return err
	}
	in.made = nil
	for _, folder := range in.req.Trusted {
		name := agenthome.Conversations(folder)
		if name == "" {
			return diag.Errorf("find your conversations of "+folder, "use `state: project`",
				"the path is longer than `state: host` can serve")
		}
		real, err := in.req.ownOrNew(path.Join(in.req.UserHome, ".claude", projectsName, name))
		if err != nil {
			return &diag.Error{Op: "find your conversations of " + folder, Err: err, Remedy: "use `state: project`"}
		}
		in.made = append(in.made, real)
		at := path.Join(projectsName, name)
		in.Imports = append(in.Imports, Import{Source: real, Destination: path.Join(importRoot, at), Writable: true})
		if err := in.importLink(dir, at, true); err != nil {
			return err
		}
	}
	return nil
}

// needFolder plans a folder of the agent's home; anything else of that
// name goes aside.
func (in *Instance) needFolder(dir *beneath.Folder, rel string) error {
	var what beneath.Entry
	if dir != nil {
		var err error
		if what, err = dir.Look(rel); err != nil {
			return in.failed("look at "+dir.Join(rel), err)
		}
	}
	if what.Kind == beneath.Dir {
		return nil
	}
	in.plan(write{rel: rel, what: "make", do: func(dir *beneath.Folder) error {
		if what.Kind != beneath.Absent {
			if err := aside(dir, rel); err != nil {
				return err
			}
		}
		return dir.Mkdir(rel, privateDir)
	}})
	return nil
}

// ownOrNew is [Request.own] for what may not be there yet.
func (r Request) ownOrNew(name string) (string, error) {
	if name == r.UserHome {
		return canonical(name), nil
	}
	real, err := r.own(name)
	if err == nil || !missing(err) {
		return real, err
	}
	above, err := r.ownOrNew(path.Dir(name))
	return path.Join(above, path.Base(name)), err
}

// makeConversations makes the user's folders for conversations where there
// were none, as Claude Code would.
func (in *Instance) makeConversations() error {
	for _, dir := range in.made {
		if err := os.MkdirAll(dir, privateDir); err != nil {
			return &diag.Error{Op: "make " + dir, Err: diag.Cause(err), Remedy: "use `state: project`"}
		}
	}
	return nil
}

// endHost gives back what the user's Claude Code shall know, when nobody
// writes inside any more.
func (in *Instance) endHost() error {
	if in.req.Kind != Host {
		return nil
	}
	for _, dir := range in.made {
		if err := in.clean(dir); err != nil {
			return err
		}
	}
	return in.giveHistory()
}

// Bounds of what is looked at of what an agent left.
const (
	maxLeft      = 100_000 // names in one folder
	maxLeftDepth = 20
)

// clean takes away what is neither file nor folder, and says so.
func (in *Instance) clean(at string) error {
	removed, err := CleanConversations(at)
	for _, name := range removed {
		in.Ended = append(in.Ended, name+" "+WhyRemoved)
	}
	if err != nil {
		return in.unclean(at, err)
	}
	return nil
}

// WhyRemoved is what [CleanConversations] has done, and why, for people.
const WhyRemoved = "was no file, and is removed: the agent left it among your conversations"

// Conversations are the folders of the user's, canonical, where the agent
// writes with [Host]; none with another kind.
func (in *Instance) Conversations() []string {
	if in.work == nil {
		return nil
	}
	return in.made
}

// CleanConversations takes away what is neither file nor folder: the user's
// Claude Code would write through a link that the agent left there. Another
// session may live, so no link is followed. A folder that is gone is clean.
func CleanConversations(at string) (removed []string, err error) {
	dir, err := beneath.Open(at)
	if err != nil {
		if missing(err) {
			err = nil
		}
		return nil, err
	}
	defer dir.Close()
	c := cleaner{dir: dir}
	err = c.below(".", 0)
	slices.Sort(c.removed)
	return c.removed, err
}

type cleaner struct {
	dir     *beneath.Folder
	removed []string
}

func (c *cleaner) below(rel string, depth int) error {
	names, err := c.dir.Names(rel, maxLeft)
	if err != nil || depth > maxLeftDepth {
		return errors.Join(err, beneath.ErrTooLarge)
	}
	var faults error // one folder that is too deep does not save the others
	for _, name := range names {
		below := path.Join(rel, name)
		what, err := c.dir.Look(below)
		switch {
		case err != nil:
		case what.Kind == beneath.Dir:
			err = c.below(below, depth+1)
		case what.Kind == beneath.Link || what.Kind == beneath.Special:
			if err = c.dir.Remove(below); err == nil {
				c.removed = append(c.removed, c.dir.Join(below))
			}
		}
		if faults == nil {
			faults = err
		}
	}
	return faults
}

func (in *Instance) unclean(at string, err error) error {
	return &diag.Error{
		Op: "look through your conversations in " + at, Err: diag.Cause(err),
		Remedy: "remove what is no file there before you run Claude Code outside",
	}
}

// giveHistory adds the prompts that were typed inside to the user's history,
// in one write: their Claude Code adds to it as well.
func (in *Instance) giveHistory() error {
	inside, err := in.dir.Read(path.Join(agentHome, "history.jsonl"), fileLimit)
	if err != nil {
		return nil //nolint:nilerr // none, or one of the agent's making
	}
	name := agenthome.HistoryFile(in.req.home())
	host, note, err := in.req.readOwn(name)
	if note != "" {
		err = errors.New(note)
	}
	if err != nil {
		return in.failedHistory(name, err)
	}
	added := agenthome.NewPrompts(in.req.home(), host, inside)
	if len(added) == 0 {
		return nil
	}
	real, err := in.req.ownOrNew(name)
	if err != nil {
		return in.failedHistory(name, err)
	}
	file, err := os.OpenFile(real, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, privateFile)
	if err != nil {
		return in.failedHistory(name, err)
	}
	_, err = file.Write(added)
	if err = errors.Join(err, file.Close()); err != nil {
		return in.failedHistory(name, err)
	}
	return nil
}

func (in *Instance) failedHistory(name string, err error) error {
	return &diag.Error{
		Op: "add the prompts of this session to " + name, Err: diag.Cause(err),
		Remedy: "they are kept inside, and added after the next session",
	}
}
