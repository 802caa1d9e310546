package git

import (
	"slices"
	"strings"

	"claudebox/internal/linux/beneath"
)

// Held are the names in a git folder of the user's that must not be written to
// during a session, and that nobody makes inside in an ordinary way: what would
// go if an agent had made it, and other tools' files. Hooks, configurations and
// what leads elsewhere are left out.
func (f *Folder) Held() (held []string) {
	made, anew := []string{"hooks", "remotes", "branches"}, Folder{Path: f.Path, Role: f.Role, rel: f.rel, in: f.in}
	var j Judgement
	for _, e := range f.Entries {
		first, _, inner := strings.Cut(e.Name, "/")
		top := ruleOf(first).sort
		switch {
		case !inner && top == unknown && (e.Kind == beneath.Regular || e.Kind == beneath.Dir):
			held = append(held, e.Name)
		case !inner || top != listed && top != state || slices.Contains(made, first),
			e.Kind == beneath.Link, strings.HasSuffix(e.Name, ".lock"):
		default:
			if _, bad := j.entry(anew, e); bad || e.Name == "info/attributes" {
				held = append(held, e.Name)
			}
		}
	}
	return held
}
