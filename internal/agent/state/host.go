package state

import (
	"cmp"
	"errors"
	"os"
	"path"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
)

// With [Host] the agent works in the user's own conversations of this project
// (STATE-03): their folder is mounted read-write beside the agent's home, and
// a link leads there. The history of prompts is a copy, as it holds those of
// all projects; what is new in it is given back at the end. Nothing else of
// ~/.claude can be written.

const projectsName = "projects"

// endHost gives back what the user's Claude Code shall know, when nobody
// writes inside any more.
func (in *Instance) endHost() error {
	for _, at := range in.conversations {
		names, err := CleanConversations(at)
		for _, name := range names {
			in.Ended = append(in.Ended, name+" "+WhyRemoved)
		}
		if err != nil {
			return diag.Wrap("look through your conversations in "+at, err,
				"remove what is no file there before you run Claude Code outside")
		}
	}
	name := agenthome.HistoryFile(in.req.Request)
	if err := giveHistory(in.req, name, in.open); err != nil {
		return diag.Wrap("add the prompts of this session to "+name, err,
			"they are kept inside, and added after the next session")
	}
	return nil
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
func (in *Instance) Conversations() []string { return in.conversations }

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
	removed, err = clean(dir, ".", 0)
	slices.Sort(removed)
	return removed, err
}

// clean does so below a folder. One that is too deep does not save the others.
func clean(dir *beneath.Folder, rel string, depth int) (removed []string, fault error) {
	names, err := dir.Names(rel, maxLeft)
	if err != nil || depth > maxLeftDepth {
		return nil, errors.Join(err, beneath.ErrTooLarge)
	}
	for _, name := range names {
		below := path.Join(rel, name)
		what, err := dir.Look(below)
		switch {
		case err != nil:
		case what.Kind == beneath.Dir:
			var more []string
			more, err = clean(dir, below, depth+1)
			removed = append(removed, more...)
		case what.Kind == beneath.Link || what.Kind == beneath.Special:
			if err = dir.Remove(below); err == nil {
				removed = append(removed, dir.Join(below))
			}
		}
		fault = cmp.Or(fault, err)
	}
	return removed, fault
}

// giveHistory adds the prompts that were typed inside to the user's history,
// in one write: their Claude Code adds to it as well.
func giveHistory(req Request, name string, dir *beneath.Folder) error {
	inside, err := dir.Read(path.Join(agentHome, "history.jsonl"), fileLimit)
	if err != nil {
		return nil //nolint:nilerr // none, or one of the agent's making
	}
	host, why, err := req.readOwn(name)
	if why != "" {
		err = errors.New("your " + why)
	}
	if err != nil {
		return err
	}
	added := agenthome.NewPrompts(req.Request, host, inside)
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

// conversationFile is the name of a conversation's file, for Claude Code
// (2.1.329).
var conversationFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$`)
})

// mostConversations bounds how many are looked at.
const mostConversations = 10_000

// LastConversation is the id of the conversation in a folder that was written
// to last, if that was not before since; empty for none. The agent can write
// there: of what it left nothing but such a name is taken.
func (in *Instance) LastConversation(folder string, since time.Time) string {
	name := agenthome.Conversations(folder)
	if in.work == nil || name == "" || in.req.Kind == Ephemeral {
		return ""
	}
	at, rel := in.Dir, path.Join(agentHome, projectsName, name)
	if in.req.Kind == Host {
		at, rel = path.Join(in.req.UserHome, ".claude", projectsName, name), "."
	}
	dir, err := beneath.Open(at)
	if err != nil {
		return ""
	}
	defer dir.Close()
	names, err := dir.Names(rel, mostConversations)
	if err != nil {
		return ""
	}
	last, id := since.UnixNano(), ""
	for _, name := range names {
		match := conversationFile().FindStringSubmatch(name)
		if match == nil {
			continue
		}
		what, err := dir.Look(path.Join(rel, name))
		if err == nil && what.Kind == beneath.Regular && what.Stamp.Change >= last {
			last, id = what.Stamp.Change, match[1]
		}
	}
	return id
}
