package project

import (
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/beneath"
	"claudebox/internal/linux/pathname"
	"claudebox/internal/workspace/homelink"
	"claudebox/internal/workspace/survey"
)

// learnHome notes what the links of the user's home, and their PATH, lead to in the project: the host's tools obey it
// at once, so it is read-only inside, whether git tracks it or not. It fails where nothing can hold that: if nothing
// is there, or a link in the project is on the way.
func (l *learner) learnHome() error {
	var held []string
	for _, link := range l.HomeLinks {
		at, err := l.holdLink(link)
		if err != nil {
			return err
		}
		if at != "" {
			held = append(held, at)
		}
	}
	held = append(held, l.holdNames()...)
	const shown = 3
	switch {
	case len(held) > shown:
		l.note(false, "%d places are read-only inside, as your home leads to them: %s, …", len(held),
			strings.Join(held[:shown], ", "))
	case len(held) > 0:
		l.note(false, "read-only inside, as your home leads there: %s", strings.Join(held, ", "))
	}
	return nil
}

// holdLink has what a link leads to be read-only, and returns a text that names both; empty if it does not lead here.
func (l *learner) holdLink(link homelink.Link) (string, error) {
	name, mend := link.Path, "lead that link elsewhere"
	if link.Of != "" {
		name, mend = link.Of+" ("+link.Path+")", "take it out of "+link.Of
	}
	here := l.contains(link.Path) // a folder of PATH, or a link in one: what is here is the agent's at other times, too
	for _, hop := range link.Way {
		if l.contains(hop) && hop != l.path && (!here || link.Of != "") {
			return "", diag.Errorf("protect "+name, mend+", or straight to "+link.Leads,
				"on its way is %s, a link in the project, which the agent could lead elsewhere", hop)
		}
	}
	switch {
	case pathname.Below(l.path, link.Leads) && link.Leads != "/" && link.Leads != l.Home:
		l.note(true, "%s leads to %s: this host's tools obey what is written there, so read every change before "+
			"you use it", name, link.Leads)
		return "", nil
	case !l.contains(link.Leads):
		return "", nil
	}
	rel := relative(l.path, link.Leads)
	what, err := l.tree.look(rel)
	switch {
	case err != nil:
		return "", err
	case what.Kind == beneath.Absent && here && link.Of == "":
		return "", nil
	case what.Kind == beneath.Absent:
		return "", diag.Errorf("protect "+name, mend+", or make the file or folder that it leads to",
			"it leads to %s, which is not there: the agent could make it, and this host's tools would obey it",
			link.Leads)
	case what.Kind == beneath.Link:
		l.note(true, "%s is a link that the agent can lead elsewhere, and your PATH or another variable names it",
			link.Leads)
		return "", nil
	}
	l.named[rel] |= configured
	if here && link.Of == "" {
		return rel, nil
	}
	return fmt.Sprintf("%s (%s)", rel, name), nil
}

// holdNames does the same for files of the home that have another name here (hard links). Those that are secret are
// hidden.
func (l *learner) holdNames() (held []string) {
	for f, name := range named(l.tree.Folder, l.HomeFiles) {
		switch {
		case f.Kind != beneath.Regular || slices.Contains(strings.Split(path.Dir(f.Rel), "/"), ".git"):
		case l.IsSecret != nil && l.IsSecret(name):
			l.secret = append(l.secret, f.Rel)
			if !l.shown(f.Rel) {
				l.note(true, "%s is hidden inside: it is %s by another name (a hard link)", f.Rel, name)
			}
		default:
			l.named[f.Rel] |= configured
			held = append(held, fmt.Sprintf("%s (%s, a hard link)", f.Rel, name))
		}
	}
	return held
}

// isOfHome reports whether a covered file is a secret of the home that lies outside: no agent has that name.
func (v *view) isOfHome(inode uint64) bool {
	var st unix.Stat_t
	if v.IsSecret == nil || unix.Fstat(v.tree.FD(), &st) != nil {
		return false
	}
	name, named := v.HomeFiles[homelink.Inode{Dev: st.Dev, Ino: inode}]
	return named && !v.contains(name) && v.IsSecret(name)
}

// NamesOne returns which of some files of the home has another name in the project; empty: none.
func (p Project) NamesOne(files map[homelink.Inode]string) string {
	tree, err := beneath.Open(p.Path)
	if err != nil {
		return ""
	}
	defer tree.Close()
	for _, name := range named(tree, files) {
		return name
	}
	return ""
}

// named are the files below a folder that some files of the home are, with the names of these.
func named(tree *beneath.Folder, files map[homelink.Inode]string) iter.Seq2[survey.File, string] {
	return func(yield func(survey.File, string) bool) {
		var st unix.Stat_t
		if len(files) == 0 || unix.Fstat(tree.FD(), &st) != nil {
			return
		}
		for _, f := range everyFile(tree) {
			name := files[homelink.Inode{Dev: st.Dev, Ino: f.Stamp.Ino}]
			if name != "" && !yield(f, name) {
				return
			}
		}
	}
}
