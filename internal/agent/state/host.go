package state

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/diag"
	"claudebox/internal/diag/pattern"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/smallfile"
)

// With [Host] the agent works in the user's own conversations of this project:
// their folder is mounted read-write beside the agent's home, and a link leads
// there. The history of prompts is a copy, as it holds those of all projects;
// what is new in it is given back at the end. Nothing else of ~/.claude can be
// written.

const projectsName = "projects"

// endHost cleans the user's conversations ([CleanConversations]), and adds the new prompts to the user's history. It
// runs when nobody writes inside any more.
func (in *Instance) endHost() error {
	for _, at := range in.Conversations() {
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
			"make it a file that you can write: they are kept inside, and added after the next session")
	}
	return nil
}

// sharer returns another folder whose conversations Claude Code keeps in the same place as those of folder; empty if
// there is none. It names the place alike for both if their paths differ in odd characters only. A conversation says
// at its beginning where it was begun; all are looked at, as an agent chooses which are the newest.
func sharer(at, folder string) (string, error) {
	const head = 64 << 10 // bytes of a conversation
	dir, err := beneath.Open(at)
	if err != nil {
		if missing(err) {
			err = nil
		}
		return "", err
	}
	defer dir.Close()
	names, err := dir.Names(".", mostConversations)
	for _, name := range names {
		if !strings.HasSuffix(name, ".jsonl") {
			continue
		}
		fd, err := dir.OpenFD(name, smallfile.Flags)
		if err != nil {
			continue // no file: it is removed at the end
		}
		text, err := smallfile.ReadFD(fd, head)
		unix.Close(fd)
		if err != nil && !errors.Is(err, smallfile.ErrTooLarge) {
			continue
		}
		begun := agenthome.BegunIn(text)
		if begun != folder && agenthome.Conversations(begun) == agenthome.Conversations(folder) {
			return begun, nil
		}
	}
	return "", err
}

// deepestConversation bounds how many levels deep conversations are looked through.
const deepestConversation = 20

// WhyRemoved says, for people, what [CleanConversations] has done with a name, and why.
const WhyRemoved = "was no file, and is removed: the agent left it among your conversations"

// Conversations returns the folders of the user's, canonical, that the agent writes to with [Host]; nil with another
// kind.
func (in *Instance) Conversations() (folders []string) {
	for _, i := range in.Imports {
		if i.Writable {
			folders = append(folders, i.Source)
		}
	}
	return folders
}

// CleanConversations removes everything below a folder that is neither file nor folder: the user's Claude Code would
// write through a link that the agent left there. No link is followed, as another session may still run. It returns
// the paths that it removed, sorted. A folder that does not exist is clean.
func CleanConversations(at string) (removed []string, err error) {
	dir, err := beneath.Open(at)
	if err != nil {
		if missing(err) {
			err = nil
		}
		return nil, err
	}
	defer dir.Close()
	err = walk(dir, deepestConversation, func(in *beneath.Folder, name string, what beneath.Entry) error {
		if what.Kind != beneath.Link && what.Kind != beneath.Special {
			return nil
		}
		err := in.Remove(name)
		if err == nil {
			removed = append(removed, in.Join(name))
		}
		return err
	})
	slices.Sort(removed)
	return removed, err
}

// giveHistory adds the prompts that were typed inside to the user's history,
// in one write: their Claude Code adds to it as well.
func giveHistory(req Request, name string, dir *beneath.Folder) error {
	inside, err := dir.Read(path.Join(agentHome, "history.jsonl"), fileLimit)
	if err != nil {
		return nil //nolint:nilerr // the agent has none, or has made something else of it
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

// conversationFile matches the name of a conversation's file (Claude Code 2.1.329); its group is the conversation's
// id.
const conversationFile pattern.Expr = `^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$`

// mostConversations bounds how many names of a folder are looked at.
const mostConversations = 10_000

// LastConversation returns the id of the conversation of folder that was changed last, at since or later; empty if
// there is none. The agent can write there, so nothing but a name of the right form is taken from what it left.
func (in *Instance) LastConversation(folder string, since time.Time) string {
	name := agenthome.Conversations(folder)
	if in.held == nil || name == "" || in.req.Kind == Ephemeral {
		return ""
	}
	at, rel := in.Dir, path.Join(agentHome, projectsName, name)
	if in.req.Kind == Host {
		place := path.Join(importRoot, projectsName, name)
		i := slices.IndexFunc(in.Imports, func(i Import) bool { return i.Destination == place })
		if i < 0 {
			return ""
		}
		at, rel = in.Imports[i].Source, "." // the user's ~/.claude may be a link
	}
	dir, err := beneath.Open(at)
	if err != nil {
		return ""
	}
	defer dir.Close()
	return LastIn(dir, rel, since)
}

// LastIn is [Instance.LastConversation] for those in a folder.
func LastIn(dir *beneath.Folder, rel string, since time.Time) string {
	names, err := dir.Names(rel, mostConversations)
	if err != nil {
		return ""
	}
	last, id := since.UnixNano(), ""
	for _, name := range names {
		match := conversationFile.Compiled().FindStringSubmatch(name)
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
