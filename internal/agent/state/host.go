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

// makeConversations makes the user's folders for conversations where there
// were none, as Claude Code would.
func makeConversations(folders []string) error {
	for _, dir := range folders {
		if err := os.MkdirAll(dir, privateDir); err != nil {
			return &diag.Error{Op: "make " + dir, Err: diag.Cause(err), Remedy: "use `state: project`"}
		}
	}
	return nil
}

// endHost gives back what the user's Claude Code shall know, when nobody
// writes inside any more. removed are for people.
func endHost(req Request, conversations []string, inside *beneath.Folder) (removed []string, err error) {
	for _, at := range conversations {
		names, err := CleanConversations(at)
		for _, name := range names {
			removed = append(removed, name+" "+WhyRemoved)
		}
		if err != nil {
			return removed, &diag.Error{
				Op: "look through your conversations in " + at, Err: diag.Cause(err),
				Remedy: "remove what is no file there before you run Claude Code outside",
			}
		}
	}
	name := agenthome.HistoryFile(req.home())
	if err := giveHistory(req, name, inside); err != nil {
		return removed, &diag.Error{
			Op: "add the prompts of this session to " + name, Err: diag.Cause(err),
			Remedy: "they are kept inside, and added after the next session",
		}
	}
	return removed, nil
}

// Bounds of what is looked at of what an agent left.
const (
	maxLeft      = 100_000 // names in one folder
	maxLeftDepth = 20
)

// WhyRemoved is what [CleanConversations] has done, and why, for people.
const WhyRemoved = "was no file, and is removed: the agent left it among your conversations"

// Conversations are the folders of the user's, canonical, where the agent
// writes with [Host]; none with another kind.
func (in *Instance) Conversations() []string {
	return in.conversations
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

// giveHistory adds the prompts that were typed inside to the user's history,
// in one write: their Claude Code adds to it as well.
func giveHistory(req Request, name string, dir *beneath.Folder) error {
	inside, err := dir.Read(path.Join(agentHome, "history.jsonl"), fileLimit)
	if err != nil {
		return nil //nolint:nilerr // none, or one of the agent's making
	}
	host, note, err := req.readOwn(name)
	if note != "" {
		err = errors.New(note)
	}
	if err != nil {
		return err
	}
	added := agenthome.NewPrompts(req.home(), host, inside)
	if len(added) == 0 {
		return nil
	}
	real, err := req.ownOrNew(name)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(real, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, privateFile)
	if err != nil {
		return err
	}
	_, err = file.Write(added)
	return errors.Join(err, file.Close())
}
