package shape

import "strings"

// Nearest is the word that was probably meant by a misspelt one, or "" when
// none is near. One edit in three letters may differ, and a beginning of three
// letters or more is taken as an abbreviation.
func Nearest(text string, words []string) string {
	best, bound := "", min(len(text)/3, 3)+1
	for _, word := range words {
		if near := distance(strings.ToLower(text), word, bound); near < bound {
			best, bound = word, near
		}
	}
	if best != "" || len(text) < 3 {
		return best
	}
	for _, word := range words {
		if strings.HasPrefix(word, text) {
			return word
		}
	}
	return ""
}

// distance counts the edits (insert, delete, replace, swap neighbours) from a
// to b, by bytes; bound stands for any number that is not below it.
func distance(a, b string, bound int) int {
	if len(a)-len(b) >= bound || len(b)-len(a) >= bound {
		return bound
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+unequal(a[i], b[j]))
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], bound)
}

func unequal(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
