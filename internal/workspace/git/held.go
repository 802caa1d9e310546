package git

import (
	"strings"

	"claudebox/internal/linux/beneath"
)

// Held are the names in a git folder of the user's that must not be written to
// during a session, and that nobody makes inside in an ordinary way: what would
// go if an agent had made it, and other tools' files. Hooks and configurations
// are left out.
func Held(root *beneath.Folder, rel string) (held []string, err error) {
	g := gatherer{root: root, seen: map[string]bool{}, Look: Look{Before: &Snapshot{}}}
	list, err := g.list(rel)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		name := n.name
		switch rule := ruleOf(name); rule.sort {
		case unknown:
			if n.what.Kind == beneath.Regular || n.what.Kind == beneath.Dir {
				held = append(held, name)
			}
		case listed, state:
			if name == "hooks" || name == "remotes" || name == "branches" || n.what.Kind != beneath.Dir {
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
	if err := g.files(&f, rel, dir); err != nil {
		return nil, err
	}
	j := Judgement{Root: g.root.Path()}
	for _, e := range f.Entries {
		if _, bad := j.entry(f, e); (bad || e.Name == "info/attributes") && e.Kind != beneath.Link &&
			!strings.HasSuffix(e.Name, ".lock") {
			held = append(held, e.Name)
		}
	}
	return held, nil
}
