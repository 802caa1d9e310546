package beneath

import (
	"path"
	"strings"
)

// globLimit bounds the entries that one pattern may look at.
const globLimit = 200_000

// Glob lists what a pattern matches below the folder: "*", "?" and "[...]" match within one component, "**" matches
// any number of components. Links and .git are not entered. A component without a wildcard is not looked up, so what
// is listed may be absent. A pattern that would look at more than 200,000 entries is an error.
func (f *Folder) Glob(pattern string) ([]string, error) {
	g := globber{tree: f, left: globLimit}
	err := g.walk(".", strings.Split(strings.Trim(pattern, "/"), "/"))
	return g.found, err
}

type globber struct {
	tree  *Folder
	left  int // entries that may still be looked at
	found []string
}

// walk matches parts against what lies in the folder at.
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
	pattern := strings.ReplaceAll(parts[0], "[!", "[^") // as shells and git write it
	return g.each(at, func(name string) error {
		if ok, err := path.Match(pattern, name); err != nil || !ok {
			return err
		}
		return g.walk(path.Join(at, name), parts[1:])
	})
}

// each calls do for each name in the folder at; none if that is a file, a link or absent.
func (g *globber) each(at string, do func(name string) error) error {
	what, err := g.tree.Look(at)
	if err != nil || what.Kind != Dir {
		return err
	}
	names, err := g.tree.Names(at, g.left)
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

// Matches reports whether a pattern of [Folder.Glob] matches a path.
func Matches(pattern, rel string) bool {
	return matches(strings.Split(strings.Trim(pattern, "/"), "/"), strings.Split(rel, "/"))
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
	ok, err := path.Match(strings.ReplaceAll(pattern[0], "[!", "[^"), parts[0])
	return err == nil && ok && matches(pattern[1:], parts[1:])
}
