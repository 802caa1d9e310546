package project

import (
	"slices"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/survey"
)

// linked is a guarded file with several names (hard links).
type linked struct {
	mount Mount
	names []string // in the project, as far as they are known
	of    uint64   // how many there are
}

// otherNames guards what else a guarded file is called in the project. A session
// can make hard links of a file before it is one to be guarded: of an `.env`
// that the user then fills in.
func (v *view) otherNames(at below) error {
	guarded := v.linked(at.mounts)
	if len(guarded) == 0 {
		return nil
	}
	for _, f := range everyFile(v.tree) {
		g := guarded[f.Stamp.Ino]
		if g == nil || f.Names < 2 || slices.Contains(g.names, f.Rel) {
			continue
		}
		g.names = append(g.names, f.Rel)
		if len(g.names) > hideLimit {
			return diag.Errorf("guard "+v.tree.Join(g.names[0]), "remove those that you did not make",
				"it has %d other names in the project, %s among them", g.of-1, f.Rel)
		}
		m := g.mount
		if m.Mode == Hidden && v.shown(f.Rel) {
			continue
		}
		at.cover(f.Rel, Mount{Mode: m.Mode, Content: m.Content, Why: m.Why + ", by another name"})
		if m.Mode == Hidden {
			at.hidden = append(at.hidden, f.Rel)
		}
		at.note(true, "%s is %s by another name (a hard link), and guarded like it", v.tree.Join(f.Rel), m.Path)
	}
	for _, g := range guarded {
		if uint64(len(g.names)) < g.of {
			at.note(true, "%s is guarded by the names that it has in the project: it has others elsewhere (hard links)",
				v.tree.Join(g.names[0]))
		}
	}
	return nil
}

// linked gives the guarded files with several names, by their inodes.
func (v *view) linked(mounts []Mount) map[uint64]*linked {
	guarded := map[uint64]*linked{}
	add := func(m Mount, rel string, ino, names uint64) {
		switch g := guarded[ino]; {
		case names < 2:
		case g != nil && g.mount.Mode == Hidden && m.Mode == ReadOnly: // this name is to be hidden, too
		case g == nil, g.mount.Mode == ReadOnly && m.Mode == Hidden:
			guarded[ino] = &linked{mount: m, names: []string{rel}, of: names}
		default:
			g.names = append(g.names, rel)
		}
	}
	for _, m := range mounts {
		rel := relative(v.path, m.Path)
		var st unix.Stat_t
		switch {
		case m.Mode == Pin || !v.contains(m.Path):
		case m.Dir && m.Mode != Hidden: // a change by another name is told when the session ends
		case m.Dir:
			for _, f := range survey.All(v.tree, walkLimit, rel).Files {
				if f.Kind != beneath.Dir { // has a name in each folder within
					add(m, f.Rel, f.Stamp.Ino, f.Names)
				}
			}
		case unix.Fstatat(v.tree.FD(), rel, &st, unix.AT_SYMLINK_NOFOLLOW) == nil:
			add(m, rel, st.Ino, uint64(st.Nlink))
		}
	}
	return guarded
}

// everyFile lists the files of the project, in folders of git and in those that
// tools fill, too. It takes its time, and is for the rare project with a guarded
// file of several names.
func everyFile(tree *beneath.Folder) []survey.File {
	all := survey.All(tree, walkLimitAfter)
	if len(all.Git) == 0 {
		return all.Files
	}
	return append(all.Files, survey.All(tree, walkLimitAfter, all.Git...).Files...)
}
