package handover

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// Both sides commit as fast as they can. No git of theirs fails because of the hand-over, and nothing is lost.
func TestNoGitFailsWhileCommitsAreHandedOver(t *testing.T) {
	const rounds = 100
	const commits = `for n in {1..%d}; do for f in %s; do echo $n >$f; git add $f 2>&1 && git commit -qm "%[2]s $n" 2>&1 || echo "$n failed"; done; done`
	w := newWorld(t)
	w.begin()
	w.agent("echo x >g; git add g; git commit -qm g")
	w.user("echo x >f; git add f; git commit -qm f") // both have moved: neither moves the other's branch from here on
	w.sync()
	w.session.Follow()
	done := make(chan string)
	go func() { done <- w.user(fmt.Sprintf(commits, rounds, "f")) }()
	inside := w.agent(fmt.Sprintf(commits, rounds, "g"))
	outside := <-done
	if i, o := strings.Count(inside, "failed"), strings.Count(outside, "failed"); i+o > 0 {
		t.Errorf("%d failed inside, %d outside:\n%s\n%s", i, o, inside, outside)
	}
	told := w.end()
	for _, of := range []string{"f", "g"} {
		if got := w.user("git log --format=%s --all | grep -c '^" + of + " '"); got != fmt.Sprint(rounds) {
			t.Errorf("of %d commits of %s the user has %s; told %q", rounds, of, got, told)
		}
	}
	if got := w.user("git diff --cached --stat; git fsck --strict --no-dangling 2>&1"); got != "" {
		t.Errorf("outside: %s", got)
	}
}

// A new index takes the place of just the one that was read, and never while another one may write.
func TestAnIndexThatAnotherOneWritesIsNotReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile, want string
		fails           bool
	}{
		"nothing happens":            {"", "new", false},
		"another one writes":         {"touch index.lock", "old", true},
		"another one has written":    {"echo theirs >x; mv x index", "theirs", true},
		"another one has removed it": {"rm index", "", true},
		"nothing new is there":       {"rm " + freshIndex, "old", false},
	} {
		for _, exchanges := range []bool{true, false} {
			t.Run(fmt.Sprint(name, exchanges), func(t *testing.T) {
				w := &world{T: t, project: t.TempDir()}
				w.user("echo old >index; echo new >" + freshIndex)
				folder, err := os.Open(w.project)
				must.Do(t, err)
				defer folder.Close()
				s := swap{folder: folder}
				s.was = s.look("index")
				w.user(c.meanwhile)
				exchange := s.exchange
				if !exchanges {
					if s.look(freshIndex).Ino == 0 {
						t.Skip("it is not called without")
					}
					exchange = s.replace
				}
				if err := exchange(); (err != nil) != c.fails {
					t.Errorf("%v", err)
				}
				if got := w.user("cat index 2>/dev/null || :"); got != c.want {
					t.Errorf("the index is %q, want %q", got, c.want)
				}
			})
		}
	}
}

// What the agent stages between the look at its index and the change of that stays.
func TestWhatIsStagedMeanwhileStays(t *testing.T) {
	for meanwhile, want := range map[string]string{
		"echo h >h; git add h": "A  h", "echo other >a; git add a": "M  a", "git switch -qc other": "",
	} {
		w := newWorld(t)
		w.begin()
		l := w.session.places[0]
		before, err := l.inner().read()
		must.Do(t, err)
		id := w.user("git hash-object -w --stdin <<<fresh")
		change := TreeChange{Tree: l.place.Trees[0], Expect: before.Trees["."], Stage: []Entry{{"a", "100644 " + id + " 0\n"}}}
		w.agent(meanwhile)
		err = l.inner().apply(Changes{Trees: []TreeChange{change}}, "test")
		got, stands := w.agent("git status --porcelain -uno"), w.agent("git ls-files -s a | cut -d' ' -f2") == id
		if stands != (want == "A  h") || stands != (err == nil) || !strings.Contains(got, want) {
			t.Errorf("%s: %v, it stands: %t; inside:\n%s", meanwhile, err, stands, got)
		}
		w.end()
	}
}

// HEAD on no branch in a rebase is never read without the rebase, also where that begins or ends between two steps of the
// look: a branch beside was made of it once.
func TestARebaseBeginsOrEndsWhileItIsRead(t *testing.T) {
	const wrapper = `#!%s
%[2]s "$@"; s=$?
case " $* " in *" %[3]s "*) (unset GIT_DIR GIT_WORK_TREE; cd %[4]s; %[5]s) >/dev/null 2>&1;; esac
exit $s`
	const begin = "git rebase main"
	for _, step := range []string{"for-each-ref", "symbolic-ref", "ls-files"} {
		for before, then := range map[string]string{begin: "git checkout --theirs a; git add a; GIT_EDITOR=true git rebase --continue", "": begin} {
			w := newWorld(t)
			w.user("git switch -qc feat; echo x >x; git add x; git commit -qm x; echo b >a; git commit -qam b; git switch -q main; echo c >a; git commit -qam c; git switch -q feat; " +
				before + " >/dev/null 2>&1 || :")
			w.begin()
			outer, bin := w.session.places[0].outer(), t.TempDir()
			text := fmt.Sprintf(wrapper, w.tools.Bash, w.tools.Git, step, w.project, "PATH="+filepath.Dir(w.tools.Git)+":$PATH; "+then)
			must.Program(t, filepath.Join(bin, "git"), text)
			outer.tools.Path = append([]string{bin}, outer.tools.Path...)
			side, err := outer.read()
			must.Do(t, err)
			head := side.Trees["."].Head
			if isObject(head) && !slices.Contains(slices.Collect(maps.Values(side.Refs)), head) && len(side.Trees["."].UnderWay) == 0 {
				t.Errorf("%s, then %q: HEAD is %s, the branches %v", step, then, head, side.Refs)
			}
			w.end()
		}
	}
}

// A git inside that read its index before the user's staged file came writes it afterwards: the file comes again, and
// does not count as taken out.
func TestAnIndexThatGitReadBeforeIsWrittenOverWhatCame(t *testing.T) {
	w := newWorld(t)
	w.begin()
	w.agent("cp .git/index .git/read")
	w.user("echo b >b; git add b")
	l := w.session.places[0]
	if _, err := l.handOver(l.facts()); err != nil {
		t.Fatal(err)
	}
	if got := w.agent("git diff --cached --name-only; cp .git/read .git/index"); got != "b" {
		t.Fatalf("inside %q is staged", got)
	}
	w.sync()
	told := w.end()
	w.same(told)
	if got := w.user("git diff --cached --name-only"); got != "b" {
		t.Errorf("%q is staged; told %q", got, told)
	}
}

// A `git status` of the user's writes the index anew, with the same in it. That does not put what crosses off.
func TestAnIndexThatIsWrittenAnewMeanwhileIsTakenAgain(t *testing.T) {
	w := newWorld(t)
	w.begin()
	w.agent("echo b >b; git add b")
	l, bin := w.session.places[0], t.TempDir()
	script := `#!/bin/bash
if [[ " $* " = *" update-index "* && ! -e ` + bin + `/done ]]; then
  touch ` + bin + `/done; cp "$GIT_DIR/index" ` + w.project + `/x && mv ` + w.project + `/x "$GIT_DIR/index"
fi
exec ` + w.tools.Git + ` "$@"
`
	must.Program(t, bin+"/git", script)
	l.Tools.Path = append([]string{bin}, l.Tools.Path...)
	if _, err := l.handOver(l.facts()); err != nil {
		t.Error(err)
	}
	if got := w.user("ls " + bin + "; git status --porcelain"); got != "done\ngit\nA  b" {
		t.Errorf("the user has %q", got)
	}
	w.end()
}

// A file that was changed in the tick in which it was staged, to another content of the same size, shows as changed
// after a hand-over, too.
func TestAChangeInTheTickOfItsStagingIsSeen(t *testing.T) {
	w := newWorld(t)
	w.user("git config core.trustctime false; echo a >f; git add f; git commit -qm f")
	w.begin()
	w.agent("echo g >g; git add g; git commit -qm g")
	w.user(`echo b >f; touch -d @1000000000 f; git add f; echo c >f; touch -d @1000000000 f .git/index`)
	w.sync()
	if got := w.user("git log --format=%s -1; git status --porcelain -uno"); got != "g\nMM f" {
		t.Errorf("outside is %q", got)
	}
	w.end()
}
