package aside_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/aside"
)

// asWord is what this test program is called with to answer.
const asWord = "answer-a-test"

func TestMain(m *testing.M) {
	if os.Args[0] != asWord {
		os.Exit(m.Run())
	}
	slowly := func(q []string) (int, error) {
		time.Sleep(20 * time.Millisecond)
		return len(q[0]), nil
	}
	if aside.Answer(slowly) != nil {
		os.Exit(1)
	}
}

// The newline behind a question is read with it, or later.
func TestAQuestionOfEveryLengthIsAnswered(t *testing.T) {
	self, err := os.Executable()
	must.Do(t, err)
	for n := range 600 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			var got int
			if err := aside.Ask(t.Context(), self, asWord, []string{strings.Repeat("x", n)}, &got); err != nil || got != n {
				t.Errorf("of %d characters: %d, %v", n, got, err)
			}
		})
	}
}

func TestTheReasonOfAStageThatFailsIsTold(t *testing.T) {
	p := filepath.Join(t.TempDir(), "p")
	must.Program(t, p, "#!/bin/sh\necho 'panic: the reason' >&2\nexit 2\n")
	var answer int
	if err := aside.Ask(t.Context(), p, "x", "q", &answer); err == nil || !strings.Contains(err.Error(), "p: exit status 2: panic: the reason") {
		t.Errorf("got %v", err)
	}
}
