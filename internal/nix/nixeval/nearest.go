package nixeval

import (
	"cmp"
	"slices"
	"strings"

	"claudebox/internal/diag/spelling"
)

// maxNearest is how many names are worth a person's reading.
const maxNearest = 3

// Nearest gives up to three of names that could have been meant by name,
// nearest first: another case, a slip of one or two letters, a swap.
func Nearest(name string, names []string) []string {
	type near struct {
		name     string
		distance int
	}
	limit := min(2, len(name)/2)
	var found []near
	for _, n := range names {
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(n), limit); d <= limit {
			found = append(found, near{n, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var best []string
	for _, f := range found[:min(len(found), maxNearest)] {
		best = append(best, f.name)
	}
	return best
}
