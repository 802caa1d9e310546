package storetree

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAwait(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		report io.Reader
		want   string
	}{
		"returns when the tree is there, and waits for no end": {io.MultiReader(strings.NewReader("made"), iotest.ErrReader(broken)), ""},
		"takes it in pieces":                       {iotest.OneByteReader(strings.NewReader("made")), ""},
		"says what failed":                         {strings.NewReader("mount: no such file"), "mount: no such file"},
		"says that the stage is gone":              {strings.NewReader(""), ErrGone.Error()},
		"says that it cannot be told":              {iotest.ErrReader(broken), "broken"},
		"takes no half of a word for the whole":    {strings.NewReader("mad"), "mad"},
		"takes nothing that begins like it for it": {strings.NewReader("made of lies"), "made of lies"},
	} {
		t.Run(name, func(t *testing.T) {
			switch err := Await(tc.report); {
			case tc.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tc.want != "" && (err == nil || err.Error() != tc.want):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestOrdinaryWordsAreNoStage(t *testing.T) {
	for _, words := range [][]string{nil, {"claudebox"}, {"/bin/claudebox", "3", "4"}, {frame}, {fill}, {"claudebox", "3"}} {
		if _, ran := Run(words); ran {
			t.Errorf("%q is taken for a stage", words)
		}
	}
	for _, name := range []string{frame, fill} {
		if status, ran := Run([]string{name, "x"}); !ran || status != failed {
			t.Errorf("status %d, ran %t", status, ran)
		}
	}
}
