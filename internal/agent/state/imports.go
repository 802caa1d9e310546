package state

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"

	"claudebox/internal/agent/agenthome"
	"claudebox/internal/linux/beneath"
)

// importRoot is where the user's folders are mounted inside, read-only. They
// cannot be mounted in the agent's home itself: the agent can write there.
const importRoot = "/run/claudebox/import"

// imports links the agent's home to those that the user has. A link of ours
// without a folder behind it goes.
func (in *Instance) imports(dir *beneath.Folder) error {
	for _, name := range agenthome.Folders {
		real := in.ownFolder(path.Join(in.req.UserHome, ".claude", name))
		if real != "" {
			in.Imports = append(in.Imports, Import{Source: real, Destination: path.Join(importRoot, name)})
		}
		if err := in.importLink(dir, name, real != ""); err != nil {
			return err
		}
	}
	return nil
}

// ownFolder gives the folder that a path of the user leads to, empty for none.
func (in *Instance) ownFolder(name string) string {
	real, err := in.req.own(name)
	var foreign *foreignError
	if errors.As(err, &foreign) {
		in.Notes = append(in.Notes, "your "+name+" does not enter: "+foreign.Error())
	}
	var st unix.Stat_t
	if err != nil || unix.Lstat(real, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return ""
	}
	return real
}

func (in *Instance) importLink(dir *beneath.Folder, name string, wanted bool) error {
	rel, text := path.Join(agentHome, name), path.Join(importRoot, name)
	var what beneath.Entry
	ours := false
	if dir != nil {
		var err error
		if what, err = dir.Look(rel); err != nil {
			return in.failed("look at "+dir.Join(rel), err)
		}
		if what.Kind == beneath.Link {
			there, _ := dir.Readlink(rel)
			ours = there == text
		}
	}
	switch {
	case ours && !wanted:
		in.plan(write{rel: rel, what: "remove", do: func(dir *beneath.Folder) error { return dir.Remove(rel) }})
	case wanted && !ours:
		in.plan(write{
			rel: rel, what: "link",
			do: func(dir *beneath.Folder) error { return relink(dir, rel, text, what.Kind) },
		})
	}
	return nil
}

func relink(dir *beneath.Folder, rel, text string, was beneath.Kind) error {
	if was != beneath.Absent {
		if err := aside(dir, rel); err != nil {
			return err
		}
	}
	return dir.Symlink(text, rel)
}
