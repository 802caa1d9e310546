package aftermath

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"claudebox/internal/linux/beneath"
	"claudebox/internal/workspace/hostrun"
	"claudebox/internal/workspace/survey"
)

// namedStates sums up the tracked places that stay writable and that no list
// knows: the user's git configuration names them, as a folder of hooks.
func namedStates(tree *beneath.Folder, reported []string) map[string]string {
	if len(reported) == 0 {
		return nil
	}
	states := map[string]string{}
	for _, rel := range reported {
		if hostrun.Means(rel)+hostrun.Means(rel+"/x") == "" {
			states[rel] = contentOf(tree, rel)
		}
	}
	return states
}

// contentOf sums up a file, or all files in a folder; empty: nothing is there.
func contentOf(tree *beneath.Folder, rel string) string {
	what, err := tree.Look(rel)
	if err == nil && what.Kind == beneath.Absent {
		return ""
	}
	const limit = 1000
	files := []survey.File{{Rel: rel, Kind: what.Kind, Exec: what.Perm&0o111 != 0, Stamp: what.Stamp}}
	if what.Kind == beneath.Dir {
		files = survey.All(tree, limit, rel).Files
	}
	sum := sha256.New()
	for _, f := range files {
		content, known := sumOf(tree, f)
		if known || f.Kind == beneath.Dir {
			f.Stamp = beneath.Stamp{}
		}
		fmt.Fprintf(sum, "%q %d %t %+v %x\n", f.Rel, f.Kind, f.Exec, f.Stamp, content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// compareNamed adds those of them that are not what they were.
func (r *Report) compareNamed(s *Session, tree *beneath.Folder) {
	for rel, before := range s.named {
		now := contentOf(tree, rel)
		if now == before || r.mentions(rel) {
			continue
		}
		kind := Changed
		if now == "" {
			kind = Removed
		}
		r.add(rel, kind, "git runs it, or what is in it: your git configuration names it")
	}
}

// compareLinks adds links by which a file was hidden, and that are not what
// they were: what they led to has a name of its own that may tell nothing.
func (r *Report) compareLinks(s *Session, tree *beneath.Folder) {
	for _, f := range s.before.Files {
		if f.Kind != beneath.Link || !s.record.Scope.Hides(f.Rel) {
			continue
		}
		what, err := tree.Look(f.Rel)
		if err == nil && what.Stamp == f.Stamp {
			continue
		}
		kind := Changed
		if what.Kind == beneath.Absent {
			kind = Removed
		}
		r.add(f.Rel, kind, "a file was hidden as it led there, and stays hidden")
	}
}
