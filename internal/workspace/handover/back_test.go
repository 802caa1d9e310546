package handover

import (
	"strings"
	"testing"
)

// What crossed a moment ago is changed back before it was read on both sides: the change back crosses as well.
func TestWhatIsStagedAndChangedBackAtOnceStaysSo(t *testing.T) {
	stages := func(digit string) string { return "100644 " + strings.Repeat(digit, 40) + " 0\n" }
	a, b := stages("a"), stages("b")
	side := func(text string) Side {
		return Side{
			Refs:  map[string]string{"refs/heads/main": strings.Repeat("c", 40)},
			Trees: map[string]State{".": {Head: "ref: refs/heads/main", Index: Index("").with([]Entry{{"f", text}})}},
		}
	}
	p := Place{Trees: []Tree{{".", "/p"}}}
	none := func(string) bool { return false }
	for name, tc := range map[string]struct {
		inside, outside, putOut, putIn, wantOut, wantIn string
	}{
		"by the agent":             {a, b, b, "", a, ""},
		"by the user":              {b, a, "", b, "", a},
		"the user's own change":    {a, b, "", "", "", b},
		"the agent's own change":   {b, a, "", "", b, ""},
		"a commit that wrote over": {b, a, b, "", b, ""},
	} {
		f := facts{hidden: none, held: none, putOut: map[string]string{}, putIn: map[string]string{}}
		if tc.putOut != "" {
			f.putOut["/p/f"] = tc.putOut
		}
		if tc.putIn != "" {
			f.putIn["/p/f"] = tc.putIn
		}
		d := decide(p, side(a), side(tc.inside), side(tc.outside), nil, f)
		if out, in := d.out.staged()["/p/f"], d.in.staged()["/p/f"]; out != tc.wantOut || in != tc.wantIn {
			t.Errorf("%s: out %q, in %q", name, out, in)
		}
	}
}
