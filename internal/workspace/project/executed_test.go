package project_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"claudebox/checks/kit/must"
)

// TestWhatTheHostExecutesIsFoundInAnyRoot: a listing of the root spares most
// looks; where it tells nothing, each place is looked at.
func TestWhatTheHostExecutesIsFoundInAnyRoot(t *testing.T) {
	for name, make := range map[string]func(w world){
		"plain":               func(world) {},
		"empty but for these": func(w world) { w.write("p/README", "") },
		"a name that a file system may take for another": func(w world) { w.write("p/.envr\u200dc", "") },
		"more names than are compared": func(w world) {
			for n := range 150 {
				w.write(fmt.Sprintf("p/file-%d", n), "")
			}
		},
		"not to be listed": func(w world) { must.Do(t, os.Chmod(w.path("p"), 0o300)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("p/.envrc", "")
			w.write("p/.claude/settings.json", "")
			make(w)
			t.Cleanup(func() { os.Chmod(w.path("p"), 0o700) })
			got := w.mounts(w.open("p"))
			for _, want := range []string{"ro ~/p/.claude/settings.json", "ro ~/p/.envrc"} {
				if !slices.Contains(got, want) {
					t.Errorf("%q has no %s", got, want)
				}
			}
		})
	}
}
