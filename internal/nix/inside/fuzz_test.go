package inside_test

import (
	"slices"
	"testing"
)

// FuzzFilter holds a law: whatever a client sends, the daemon is asked nothing
// but the five questions.
//
// Promise: no rights through Nix.
func FuzzFilter(f *testing.F) {
	f.Add(slices.Concat(greeting(38), message(1, pathA), message(26, pathA), message(31, 2, pathA, pathB, 1)))
	f.Add(slices.Concat(greeting(35), message(19, make([]byte, 12*8), 1, "a", "b"), message(6, pathA), message(33, pathA)))
	f.Add(slices.Concat(greeting(37), message(43, "sha256:x!out"), message(20, 0, 1, mark, 1, 0, 0, 0, 0)))
	for _, body := range bodies {
		f.Add(slices.Concat(greeting(38), message(7), body, message(1, pathA)))
	}
	over := newFiltered(f, nil)
	f.Fuzz(func(t *testing.T, sent []byte) {
		over.talk(t, sent)
		over.onlyQuestions(t)
	})
}
