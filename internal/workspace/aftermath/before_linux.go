package aftermath

import (
	"claudebox/internal/linux/identity"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/project"
)

// recordBefore is a [record] in the form before.
type recordBefore struct {
	Noted struct {
		Began                    moment
		Scope                    project.Scope
		Inode                    uint64
		ID                       identity.ID
		Before                   git.Snapshot
		Tracked, Covered, Hidden []string
		Inodes                   []uint64
		Ignoring                 []ignoring
		Closed                   []string
		Cut                      bool
		Watched                  struct {
			Named, Behind []string
			Wholes        []whole
			Hushed        []string
		}
		Instance      string
		Conversations []string
		Filled        []filled
	}
	Places []string
	Held   string
}

// record returns it in the form of now.
func (b recordBefore) record() record {
	n := b.Noted
	return record{Places: b.Places, Held: b.Held, Noted: Noted{
		Began: n.Began, Scope: n.Scope, Inode: n.Inode, ID: n.ID, Before: n.Before, Tracked: n.Tracked,
		Covered: n.Covered, Hidden: n.Hidden, Inodes: n.Inodes, Ignoring: n.Ignoring, Closed: n.Closed, Cut: n.Cut,
		Watched:  watched{n.Watched.Named, n.Watched.Behind, n.Watched.Wholes},
		Instance: n.Instance, Conversations: n.Conversations, Filled: n.Filled,
	}}
}
