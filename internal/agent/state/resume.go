package state

import (
	"path"
	"regexp"
	"sync"
	"time"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/linux/beneath"
)

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
