package atwork

import (
	"fmt"
	"io"
	"os/exec"
	"slices"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// Programs are found that were started since it was asked last, few or many, that were something else then, and that
// were there before.
func TestWhichProgramsAreAtWork(t *testing.T) {
	v := &Programs{}
	at := map[string]string{}
	start := func(name string, words ...string) (input io.Writer) {
		at[name] = must.Folder(t)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = at[name]
		stdin, err := cmd.StdinPipe()
		must.Do(t, err)
		must.Do(t, cmd.Start())
		t.Cleanup(func() { stdin.Close(); cmd.Wait() })
		return stdin
	}
	want := func(names ...string) {
		t.Helper()
		v.asked = time.Time{}
		for _, name := range names {
			must.Await(t, name, func() bool {
				for pid, first := range v.others {
					if !first.IsZero() {
						v.others[pid] = time.Now() // on a busy machine, too, it has just begun
					}
				}
				return slices.ContainsFunc(v.running(), func(p program) bool { return p.at == at[name] && p.does("hash-object") })
			})
		}
	}
	git := []string{"git", "hash-object", "--stdin"}
	start("before", git...)
	want("before")
	v.since = time.Now().Add(time.Hour) // and no time makes up for what is overlooked
	start("few", git...)
	want("before", "few")
	start("many", git...)
	for range 2 * mostNew {
		must.Do(t, exec.Command("true").Run())
	}
	want("before", "few", "many")
	input := start("late", "bash", "-c", "read x; exec git hash-object --stdin")
	want("before")
	want("before")
	fmt.Fprintln(input)
	want("before", "few", "many", "late")
	for pid := range 1000 { // others had the numbers that come next, before the kernel began anew
		v.others[v.newest+pid] = time.Time{}
	}
	v.newest = 1 << 30
	start("anew", git...)
	want("before", "few", "many", "late", "anew")
}
