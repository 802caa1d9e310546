//go:build lab

package attacks_test

import (
	"fmt"
	"strings"
	"testing"
)

// What is covered counts as lost only once it can have been covered: bwrap takes half a second for so many mounts, and the
// watch over the covers begins sooner.
func TestNothingIsLostWhileBwrapMakesManyMounts(t *testing.T) {
	w := newWorld(t)
	w.write("project/.envrc", "a\n")
	w.folder("lent")
	mounts := []string{"protect_mode: strict", "mounts:"}
	for n := range 400 {
		mounts = append(mounts, fmt.Sprintf("  - {host: %s, sandbox: /zz/%d, mode: ro}", w.path("lent"), n))
	}
	words := append([]string{"shell", "--yes"}, w.profile(mounts...)...)
	got := w.claudebox(append(words, "--", "bash", "-c", "sleep 0.3; exit 7")...)
	if got.status != 7 || strings.Contains(got.stderr, ".envrc") {
		t.Error(got)
	}
}
