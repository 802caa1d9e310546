package beneath

import (
	"path"
	"strings"
)

// globLimit is how many entries of folders one pattern may look at.
const globLimit = 200_000

// Globber looks for patterns below a folder. It reads each folder there once.
type Globber struct {
	tree  *Folder
	names map[string][]string // in the folders that were read
}

// NewGlobber returns one that has read nothing yet.
func NewGlobber(tree *Folder) *Globber { return &Globber{tree, map[string][]string{}} }

// Glob lists the paths below the folder that a pattern matches: "*", "?" and "[...]" match within one component, "**"
// matches any number of components, and a "**" at the end stands for the folder before it as a whole. No link is
// entered, and "**" does not enter .git. A component without a wildcard is not looked up, so a listed path may be
// absent. A pattern that would look at more than 200,000 entries is an error.
func (from *Globber) Glob(pattern string) ([]string, error) {
	g := globber{Globber: from, left: globLimit}
	err := g.walk(".", strings.Split(strings.Trim(pattern, "/"), "/"))
	return g.found, err
}

// globber is the state of one call of [Globber.Glob].
type globber struct {
	*Globber
	left  int // entries that may still be looked at
	found []string
}

// walk adds to found all paths below the path at that match parts, the rest of a pattern.
func (g *globber) walk(at string, parts []string) error {
	switch {
	case len(parts) == 0 || at != "." && len(parts) == 1 && parts[0] == "**":
		g.found = append(g.found, at) // "dir/**" is all of dir
		return nil
	case parts[0] == "**":
		if len(parts) > 1 {
			if err := g.walk(at, parts[1:]); err != nil {
				return err
			}
		}
		return g.each(at, func(name string) error {
			if name == ".git" {
				return nil
			}
			return g.walk(path.Join(at, name), parts)
		})
	case !strings.ContainsAny(parts[0], `*?[\`):
		return g.walk(path.Join(at, parts[0]), parts[1:])
	}
	return g.each(at, func(name string) error {
		if ok, err := matchesName(parts[0], name); err != nil || !ok {
			return err
		}
		return g.walk(path.Join(at, name), parts[1:])
	})
}

// each calls do for each name in the folder at the path at. It calls nothing if a file, a link or nothing is there.
func (g *globber) each(at string, do func(name string) error) error {
	names, err := g.list(at)
	if err != nil {
		return err
	}
	g.left -= len(names)
	for _, name := range names {
		if err := do(name); err != nil {
			return err
		}
	}
	return nil
}

// list returns the names in a folder, or none if there is no folder.
func (g *globber) list(at string) ([]string, error) {
	if names, known := g.names[at]; known && len(names) <= g.left {
		return names, nil
	}
	what, err := g.tree.Look(at)
	if err != nil || what.Kind != Dir { // not kept: there is no end of names that are no folders
		return nil, err
	}
	names, err := g.tree.Names(at, g.left)
	if err != nil {
		return nil, err
	}
	g.names[at] = names
	return names, nil
}

// Matches reports whether a pattern of [Globber.Glob] matches a relative path. It compares texts, and looks at no file.
func Matches(pattern, rel string) bool {
	pattern = strings.Trim(strings.TrimPrefix(pattern, "./"), "/")
	return matches(strings.Split(pattern, "/"), strings.Split(rel, "/"))
}

func matches(pattern, parts []string) bool {
	switch {
	case len(pattern) == 0:
		return len(parts) == 0
	case pattern[0] == "**":
		return matches(pattern[1:], parts) || len(parts) > 0 && matches(pattern, parts[1:])
	case len(parts) == 0:
		return false
	}
	return MatchesName(pattern[0], parts[0]) && matches(pattern[1:], parts[1:])
}

// MatchesName reports whether a component of a pattern matches a name.
func MatchesName(pattern, name string) bool {
	ok, err := matchesName(pattern, name)
	return err == nil && ok
}

// matchesName is [path.Match] for one component, with "[!" for "[^" as shells and git write it.
func matchesName(pattern, name string) (bool, error) {
	return path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
}
