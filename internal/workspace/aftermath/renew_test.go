package aftermath_test

import (
	"os"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// An index that no session changed is not written to.
func TestAnIndexThatNobodyChangedIsLeft(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; echo x >b; git add .; git commit -qm x")
	was, err := os.Stat(w.path("p/.git/index"))
	must.Do(t, err)
	w.session("echo y >b")
	now, err := os.Stat(w.path("p/.git/index"))
	must.Do(t, err)
	if !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) {
		t.Error("it is another")
	}
}

// An agent commits another hook than the file that it leaves there: the next checkout writes it.
func TestAnotherContentInTheIndexIsTold(t *testing.T) {
	t.Parallel()
	const elsewhere = `b=$(echo evil | git hash-object -w --stdin); git update-index --cacheinfo 100755,$b,`
	for name, tc := range map[string]struct{ agent, want string }{
		"of a hook":              {elsewhere + "gh/x; git commit -qm y", "staged gh/x"},
		"of what a tool runs":    {elsewhere + ".envrc", "staged .envrc"},
		"of any file":            {elsewhere + "b", ""},
		"of a hook, in the file": {"echo true >gh/x; git commit -qam y", "changed gh"},
		"of none":                {"echo y >b; git commit -qam y", ""},
	} {
		w := newWorldHere(t)
		w.sh(repository + "good gh/x; echo x >.envrc; echo x >b; git add .; git commit -qm y; git config core.hooksPath gh")
		if got := strings.Join(lines(w.session(tc.agent)), " "); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
