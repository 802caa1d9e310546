// Package spelling measures how far a misspelt word is from another. It imports nothing and does no I/O.
package spelling

// Distance returns how many letters (bytes) must be inserted, deleted, replaced or swapped with their neighbour to
// get from one word to the other (optimal string alignment), or most+1 if that is more than most.
func Distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, replaced)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], most+1)
}

// Edits returns how many letters of a name may be wrong so that another one is near: one of three, two at most.
func Edits(name string) int { return min(2, len(name)/3) }
