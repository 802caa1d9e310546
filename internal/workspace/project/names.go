package project

import (
	"fmt"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/survey"
)

// otherNames guards what else a guarded file is called in the project. A session
// can make hard links of a file before it is one to be guarded: of an `.env`
// that the user then fills in.
func (o *opener) otherNames() error {
	guarded := o.withNames()
	if len(guarded) == 0 {
		return nil
	}
	for _, f := range o.everyFile() {
		g, known := guarded[f.Stamp.Ino]
		if !known || f.Names < 2 || slices.Contains(g.names, f.Rel) {
			continue
		}
		g.names = append(g.names, f.Rel)
		if len(g.names) > hideLimit {
			return diag.Errorf("guard "+o.tree.Join(g.names[0]), "remove those that you did not make",
				"it has %d other names in the project, %s among them",
				g.of-1, f.Rel)
		}
		if g.mount.Mode != Hidden || !o.shown(f.Rel) {
			o.guardAs(g.mount, f.Rel)
		}
	}
	slices.Sort(o.Hidden)
	for _, g := range guarded {
		if uint64(len(g.names)) < g.of {
			o.note(true, o.tree.Join(g.names[0])+
				" is guarded by the names that it has in the project: it has others elsewhere (hard links)")
		}
	}
	return nil
}

// guardAs guards a file as another one is.
func (o *opener) guardAs(m Mount, rel string) {
	g := guard{o, o.tree}
	g.pin(path.Dir(rel), m.Why)
	g.add(Mount{Mode: m.Mode, Content: m.Content, Why: m.Why + ", by another name"}, rel)
	if m.Mode == Hidden {
		o.Hidden = append(o.Hidden, rel)
	}
	o.note(true, fmt.Sprintf("%s is %s by another name (a hard link), and guarded like it", o.tree.Join(rel), m.Path))
}

// named is a guarded file with several names.
type named struct {
	mount Mount
	names []string // in the project, as far as they are known
	of    uint64   // how many there are
}

// withNames gives the guarded files with several names, by their inodes.
func (o *opener) withNames() map[uint64]*named {
	guarded := map[uint64]*named{}
	for _, m := range o.Mounts {
		rel := relative(o.Path, m.Path)
		switch {
		case m.Mode == Pin || !o.contains(m.Path):
		case m.Dir && m.Mode != Hidden: // a change by another name is told when the session ends
		case m.Dir:
			for _, f := range o.filesBelow(rel) {
				if f.Kind != beneath.Dir { // has a name in each folder within
					note(guarded, m, f.Rel, f.Stamp.Ino, f.Names)
				}
			}
		default:
			var st unix.Stat_t
			if unix.Fstatat(o.tree.FD(), rel, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
				note(guarded, m, rel, st.Ino, uint64(st.Nlink))
			}
		}
	}
	return guarded
}

func note(guarded map[uint64]*named, m Mount, rel string, ino, names uint64) {
	switch g := guarded[ino]; {
	case names < 2:
	case g != nil && g.mount.Mode == Hidden && m.Mode == ReadOnly: // this name is to be hidden, too
	case g == nil, g.mount.Mode == ReadOnly && m.Mode == Hidden:
		guarded[ino] = &named{mount: m, names: []string{rel}, of: names}
	default:
		g.names = append(g.names, rel)
	}
}

// filesBelow lists the files in a folder.
func (o *opener) filesBelow(rel string) []survey.File {
	return survey.All(o.tree, walkLimit, rel).Files
}

// everyFile lists the files of the project, in folders of git and in those that
// tools fill, too. It takes its time, and is for the rare project with a guarded
// file of several names.
func (o *opener) everyFile() []survey.File {
	all := survey.All(o.tree, walkLimitAfter)
	if len(all.Git) == 0 {
		return all.Files
	}
	return append(all.Files, survey.All(o.tree, walkLimitAfter, all.Git...).Files...)
}
