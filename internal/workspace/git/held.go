package git

import (
	"path"
	"strings"

	"claudebox/internal/linux/beneath"
)

// Held are the names in a git folder of the user's that must not be written to
// during a session, and that nobody makes inside in an ordinary way: what would
// go if an agent had made it, and other tools' files. Hooks and configurations
// are left out.
func Held(root *beneath.Folder, rel string) (held []string, err error) {
	g := gatherer{root: root, seen: map[string]bool{}, Look: Look{Before: &Snapshot{}}}
	names, err := root.Names(rel, nameLimit)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		switch rule := ruleOf(name); rule.sort {
		case unknown:
			if what, err := root.Look(path.Join(rel, name)); err == nil && (what.Kind == beneath.Regular || what.Kind == beneath.Dir) {
				held = append(held, name)
			}
		case listed, state:
			if name == "hooks" || name == "remotes" || name == "branches" {
				continue
			}
			inner, err := g.breaking(rel, name)
			if err != nil {
				return nil, err
			}
			held = append(held, inner...)
		}
	}
	return held, nil
}

// breaking are the files of a folder whose rule would take them out.
func (g *gatherer) breaking(rel, dir string) (held []string, err error) {
	f := Folder{rel: rel, Path: g.abs(rel)}
	if what, err := g.root.Look(path.Join(rel, dir)); err != nil || what.Kind != beneath.Dir {
		return nil, err
	}
	if err := g.list(&f, rel, dir); err != nil {
		return nil, err
	}
	j := Judgement{Root: g.root.Path()}
	for _, e := range f.Entries {
		if _, bad := j.entry(f, e); (bad || e.Name == "info/attributes") && e.Kind != beneath.Link && !strings.HasSuffix(e.Name, ".lock") {
			held = append(held, e.Name)
		}
	}
	return held, nil
}
