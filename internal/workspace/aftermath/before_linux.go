package aftermath

import (
	"claudebox/internal/linux/identity"
	"claudebox/internal/workspace/git"
	"claudebox/internal/workspace/project"
)

// recordBefore is a [record] in the form before.
type recordBefore struct {
	Began  moment
	Scope  project.Scope
	Inode  uint64
	ID     string
	Before struct {
		Folders []struct {
			Path    string
			Role    git.Role
			Entries []git.Entry
			Own     []struct{ A, B uint64 }
			Closed  []string
			Ignores []string
			Rel, In string
		}
		Files, Named []git.File
	}
	OpenConfig               bool
	Tracked, Staged, Covered []string
	Hidden                   []string
	Inodes                   []uint64
	Ignoring                 []ignoring
	Closed                   []string
	Cut                      bool
	Watched                  watched
	Instance                 string
	Conversations            []string
	Filled                   []filled
	Places                   []string
	Held                     string
}

// record returns it in the form of now.
func (b recordBefore) record() record {
	r := record{Places: b.Places, Held: b.Held, Noted: Noted{
		Began: b.Began, Scope: b.Scope, Inode: b.Inode, ID: identity.ID(b.ID), Tracked: b.Tracked, Staged: b.Staged,
		Covered: b.Covered, Hidden: b.Hidden, Inodes: b.Inodes, Ignoring: b.Ignoring, Closed: b.Closed, Cut: b.Cut,
		Watched: b.Watched, Instance: b.Instance, Conversations: b.Conversations, Filled: b.Filled,
	}}
	r.Before = git.Snapshot{Files: b.Before.Files, Named: b.Before.Named}
	for _, f := range b.Before.Folders {
		r.Before.Folders = append(r.Before.Folders, git.Folder{
			Path: f.Path, Role: f.Role, Entries: f.Entries, Closed: f.Closed, Rel: f.Rel, In: f.In,
		})
	}
	return r
}
