package nixeval

import (
	"cmp"
	"slices"
	"strings"
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
		if d := distance(strings.ToLower(name), strings.ToLower(n), limit); d <= limit {
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

// distance counts the letters to insert, delete, replace or swap with their
// neighbour (optimal string alignment), or gives limit+1 when it is more.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			next[j] = min(next[j-1]+1, row[j]+1, row[j-1]+unequal(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

func unequal(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
