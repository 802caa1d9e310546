package resolve

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"claudebox/internal/nix/storepath"
)

// References maps each store path to the store paths that it refers to, which may
// include itself.
type References map[string][]string

// ReadReferences reads lines of store paths separated by blanks: a path, then the
// paths that it refers to. The flake writes such a file, so that closures can be
// computed without the daemon.
func ReadReferences(r io.Reader) (References, error) {
	references := References{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // longest line in bytes: a path with some 8,000 references
	for lines.Scan() {
		paths := strings.Fields(lines.Text())
		for _, path := range paths {
			if err := storepath.Check(path); err != nil {
				return nil, fmt.Errorf("read references: %w", err)
			}
		}
		if len(paths) > 0 {
			references[paths[0]] = paths[1:]
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read references: %w", err)
	}
	return references, nil
}

// Closure returns the roots and all that they refer to, directly or indirectly,
// sorted. known is false if the references of one of these paths are not known.
func (r References) Closure(roots []string) (paths []string, known bool) {
	seen := map[string]bool{}
	for todo := slices.Clone(roots); len(todo) > 0; {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[path] {
			continue
		}
		refers, found := r[path]
		if !found {
			return nil, false
		}
		seen[path] = true
		paths = append(paths, path)
		todo = append(todo, refers...)
	}
	slices.Sort(paths)
	return paths, true
}
