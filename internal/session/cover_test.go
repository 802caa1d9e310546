package session

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/planning"
)

// A1: an agent that uncovers files again and again filled the terminal.
func TestUncoveredFilesAreNamedOnceAndCounted(t *testing.T) {
	var said bytes.Buffer
	r := &running{
		Session: &Session{inputs: inputs{Call: planning.Call{Caller: planning.Caller{Stderr: &said}}}},
		runner:  launch.Runner{Signals: &launch.Signals{}},
	}
	for range 1000 {
		r.tellUncovered("/p/.env", errors.New("moved"))
	}
	r.lost.saying.Wait()
	if got := strings.Count(said.String(), "\n"); got != 2 || !slices.Equal(r.lost.rest(), []string{"the files that are named above were uncovered 999 times more"}) {
		t.Errorf("%d lines: %s\n%s", got, said.String(), r.lost.rest())
	}
	for n := range 1000 {
		r.tellUncovered(fmt.Sprintf("/p/%d", n), errors.New("moved"))
	}
	r.lost.saying.Wait()
	if got := strings.Count(said.String(), "not covered"); got != mostUncovered || !slices.Equal(r.lost.rest(), []string{"981 more files were uncovered, all together 2000 times"}) {
		t.Errorf("%d named; %s", got, r.lost.rest())
	}
	if quiet := new(uncovered); !quiet.note(&quiet.times, "x", 1) || len(quiet.rest()) > 0 {
		t.Error("one that was said is said again")
	}
	var covered uncovered
	for n := range 50 {
		if first := covered.note(&covered.again, fmt.Sprintf("/p/%d", n%25), 1); first != (n == 0) {
			t.Errorf("time %d counts as the first: %v", n, first)
		}
	}
	if got := covered.rest(); len(got) != mostUncovered+1 || !strings.Contains(got[0], "/p/0 was replaced outside while the agent worked, 2 times") ||
		got[mostUncovered] != "5 more files were replaced so" {
		t.Errorf("%q", got)
	}
}
