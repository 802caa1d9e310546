package handover

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// An agent makes thousands of branches, and one that the user's git does not take: asked one by one, the end of the
// session took minutes.
func TestFewOfManyObjectsAreRefused(t *testing.T) {
	t.Parallel()
	var all []string
	for n := range 30_000 {
		all = append(all, fmt.Sprintf("%05d", n))
	}
	for name, tc := range map[string]struct{ bad, objects []string }{
		"none": {nil, all}, "one": {all[17:18], all}, "the last": {all[29_999:], all}, "all of few": {all[:3], all[:3]},
		"three": {[]string{all[5], all[6], all[20_000]}, all}, "nothing is asked": {nil, nil},
	} {
		asked := 0
		got := sift(tc.objects, func(some []string) error {
			asked++
			if slices.ContainsFunc(some, func(o string) bool { return slices.Contains(tc.bad, o) }) {
				return errors.New("bad")
			}
			return nil
		})
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, tc.bad) || asked > 100 {
			t.Errorf("%s: %d asked, refused %q", name, asked, names)
		}
	}
	asked := 0
	got := sift(all, func([]string) error { asked++; return errors.New("bad") })
	if len(got) != len(all) || asked > 400 {
		t.Errorf("all are bad: %d asked, %d refused", asked, len(got))
	}
}

func TestACommitHasTheRepositoriesOfThoseBeforeIt(t *testing.T) {
	t.Parallel()
	got := inherited("merge left right\nleft base\nright side base\nside\nplain old\nbase old\n", map[string][]string{
		"base": {"sub"}, "side": {"lib"}, "merge": {"top"}, "elsewhere": {"x"},
	})
	want := "map[base:[sub] left:[sub] merge:[lib sub top] right:[lib sub] side:[lib]]"
	if text := fmt.Sprint(got); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestManyRemarksOfTheSameTextAreCounted(t *testing.T) {
	t.Parallel()
	var list []Remark
	for n := range 3000 {
		list = append(list, Remark{About: fmt.Sprintf("refs/heads/b%d", n), Text: "odd"})
	}
	list = append(list, Remark{About: "HEAD", Text: "x"})
	got := strings.Join(Lines(list), "\n")
	if want := "git, b0: odd\ngit, b1: odd\ngit, b2: odd\ngit, b3: odd\ngit, b4 and 2995 more: odd\ngit, HEAD: x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Lines(list[:5]); len(got) != 5 || strings.Contains(got[4], "more") {
		t.Errorf("got %q", got)
	}
}

// An agent that added 2,000 remotes had an end wait for 41 seconds, and then nothing of it crossed.
func TestOfManyRemotesOneSessionBringsSome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	w.agent(`for n in {001..070}; do printf '[remote "r%s"]\n\turl = https://git.example/%s.git\n[branch "x%s"]\n\tremote = r%s\n\tmerge = refs/heads/x\n' $n $n $n $n
done >>.git/config`)
	for n, want := range []string{"remotes: 70 more of them", "remotes: 40 more of them", ""} {
		told := strings.Join(w.end(), "\n")
		if !strings.Contains(told, want) || want == "" && told != "" {
			t.Errorf("end %d: told %s", n, told)
		}
		if got, want := w.user("git config --list --local | grep -c ^remote"), []string{"100", "140", "140"}[n]; got != want {
			t.Errorf("end %d: the user has %s settings of remotes, not %s", n, got, want)
		}
		w.begin()
	}
	if got := w.user("git config branch.x070.remote; git config remote.r070.fetch"); got != "r070\n+refs/heads/*:refs/remotes/r070/*" {
		t.Errorf("the last branch follows %q", got)
	}
	if told := w.end(); len(told) > 0 {
		t.Errorf("nothing is left, and told is %q", told)
	}
}
