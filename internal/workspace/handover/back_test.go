package handover

import (
	"cmp"
	"strings"
	"testing"
)

// What crossed a moment ago is changed back before it was read on both sides: the change back crosses as well.
func TestWhatIsStagedAndChangedBackAtOnceStaysSo(t *testing.T) {
	t.Parallel()
	stages := func(digit string) string { return "100644 " + strings.Repeat(digit, 40) + " 0\n" }
	a, b, c := stages("a"), stages("b"), stages("c")
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
		"by the agent":               {a, b, b, "", a, ""},
		"by the user":                {b, a, "", b, "", a},
		"the user's own change":      {a, b, "", "", "", b},
		"the agent's own change":     {b, a, "", "", b, ""},
		"back again, by the user":    {b, a, b, "", "", a},
		"written over by the agent":  {a, b, "", b, "", b},
		"changed again by the agent": {c, b, b, "", c, ""},
		"changed again by the user":  {b, c, "", b, "", c},
	} {
		f := facts{hidden: none, held: none, put: put{}.clone()}
		if tc.putOut != "" {
			f.put.out["/p/f"] = tc.putOut
		}
		if tc.putIn != "" {
			f.put.in["/p/f"] = tc.putIn
		}
		d := decide(p, side(a), side(tc.inside), side(tc.outside), nil, f)
		if out, in := staged(d.out), staged(d.in); out != tc.wantOut || in != tc.wantIn {
			t.Errorf("%s: out %q, in %q", name, out, in)
		}
		if put := cmp.Or(tc.wantOut, tc.wantIn); d.put.out["/p/f"]+d.put.in["/p/f"] != put {
			t.Errorf("%s: is put %q", name, d.put)
		}
	}
}

// A commit that had read its index before something was put there writes over it. A switch to another branch, which
// has the old content, does not.
func TestACommitThatWroteOverWhatCrossedIsNoChange(t *testing.T) {
	t.Parallel()
	a, b := "100644 a 0\n", "100644 b 0\n"
	at := func(head, commit, text string) Side {
		return Side{
			Refs:  map[string]string{"refs/heads/main": commit, "refs/heads/other": "c3"},
			Trees: map[string]State{".": {Head: "ref: refs/heads/" + head, Index: Index("").with([]Entry{{"f", text}})}},
		}
	}
	none := func(string) bool { return false }
	for name, tc := range map[string]struct {
		by              string // whose index has what was there before
		side            Side
		wantOut, wantIn string
	}{
		"a commit of the user's":            {"user", at("main", "c2", a), b, ""},
		"the user goes back to before":      {"user", at("main", "c0", a), "", a},
		"the user switches":                 {"user", at("other", "c1", a), "", a},
		"half of it: git writes HEAD last":  {"user", at("main", "c1", a), "", a},
		"a commit of the agent's":           {"agent", at("main", "c2", a), "", b},
		"the agent goes back to before":     {"agent", at("main", "c0", a), a, ""},
		"the agent switches":                {"agent", at("other", "c1", a), a, ""},
		"a git of the agent's is to commit": {"agent", at("main", "c1", a), "", b},
	} {
		f := facts{
			hidden: none, held: none, put: put{}.clone(),
			forward: map[[2]string]bool{{"c0", "c1"}: true, {"c1", "c2"}: true, {"c1", "c3"}: true},
		}
		inner, outer := at("main", "c1", b), tc.side
		f.put.out["/p/f"] = b
		if tc.by == "agent" {
			inner, outer, f.put = tc.side, inner, put{f.put.in, f.put.out}
		}
		d := decide(Place{Trees: []Tree{{".", "/p"}}}, at("main", "c1", a), inner, outer, nil, f)
		if out, in := staged(d.out), staged(d.in); out != tc.wantOut || in != tc.wantIn {
			t.Errorf("%s: out %q, in %q", name, out, in)
		}
	}
}

// staged are the stages that are to be written.
func staged(c Changes) string {
	if len(c.Trees) == 0 || len(c.Trees[0].Stage) == 0 {
		return ""
	}
	return c.Trees[0].Stage[0].Stages
}

// What crossed is still known where a hand-over in between decides nothing, and forgotten once both sides have it.
func TestWhatCrossedIsKnownUntilBothSidesHaveIt(t *testing.T) {
	tree := Tree{".", "/p"}
	a, b, c := "100644 a 0\n", "100644 b 0\n", "100644 c 0\n"
	none := func(string) bool { return false }
	f := facts{hidden: none, held: none}
	state := func(text, head string) Side {
		return Side{Trees: map[string]State{".": {Head: head, Index: Index("").with([]Entry{{"f", text}})}}}
	}
	step := func(base, inside, outside Side) decision {
		d := decide(Place{Trees: []Tree{tree}}, base, inside, outside, nil, f)
		f.put = d.put
		return d
	}
	d := step(state(a, "x"), state(b, "x"), state(a, "x"))
	rebasing := state(b, "x")
	busy := rebasing.Trees["."]
	busy.UnderWay = []string{"rebase-merge"}
	rebasing.Trees["."] = busy
	d = step(d.next, rebasing, state(b, "x"))
	if d = step(d.next, state(c, "x"), state(b, "x")); staged(d.out) != c {
		t.Errorf("the agent's next change: %+v", d)
	}
	d = step(d.next, state(c, "x"), state(c, "x"))
	d = step(d.next, state(a, "x"), state(a, "x")) // each by itself
	if d = step(d.next, state(a, "x"), state(c, "x")); staged(d.in) != c || staged(d.out) != "" {
		t.Errorf("the user's change to what was put once: %+v", d)
	}
}
