package session

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A1: an agent that uncovers files again and again filled the terminal.
func TestUncoveredFilesAreNamedOnceAndCounted(t *testing.T) {
	var said bytes.Buffer
	r := &running{Session: &Session{inputs: inputs{call: call{caller: Caller{Stderr: &said}}}}}
	for range 1000 {
		r.tellUncovered("/p/.env", errors.New("moved"))
	}
	if got := strings.Count(said.String(), "\n"); got != 2 || r.lost.rest() != "the files that are named above were uncovered 999 times more" {
		t.Errorf("%d lines: %s\n%s", got, said.String(), r.lost.rest())
	}
	for n := range 1000 {
		r.tellUncovered(fmt.Sprintf("/p/%d", n), errors.New("moved"))
	}
	if got := strings.Count(said.String(), "not covered"); got != mostUncovered || r.lost.rest() != "981 more files were uncovered, all together 2000 times" {
		t.Errorf("%d named; %s", got, r.lost.rest())
	}
	if quiet := new(uncovered); !quiet.note("x") || quiet.rest() != "" {
		t.Error("one that was said is said again")
	}
}
