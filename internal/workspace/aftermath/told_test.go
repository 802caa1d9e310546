package aftermath_test

import (
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/expect"
)

// hooked is a repository whose configuration names a tracked folder of hooks.
const hooked = `git init -q; mkdir .githooks; printf '#!/bin/sh\n' >.githooks/pre-commit; chmod +x .githooks/pre-commit
	echo a >.githooks/Makefile; echo a >a; git add .; git commit -qm a; git config core.hooksPath .githooks
	`

// TestWhatGitRunsIsChangedByASessionThatIsKilled: it is told as it is at an ordinary end.
func TestWhatGitRunsIsChangedByASessionThatIsKilled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ user, agent, want string }{
		"a tracked hook":    {hooked, "echo x >>.githooks/pre-commit", "changed .githooks"},
		"an environment":    {"mkdir -p .venv/bin; echo a >.venv/bin/activate", "echo x >>.venv/bin/activate", "changed .venv/bin"},
		"programs":          {"mkdir -p node_modules/.bin", "echo x >node_modules/.bin/tsc", "changed node_modules/.bin"},
		"new ones":          {"true", "mkdir -p venv/bin", "new venv/bin"},
		"what a link means": {"mkdir cfg; ln -s cfg .vscode", "echo x >cfg/tasks.json", "changed .vscode"},
		"nothing":           {hooked + "mkdir -p .venv/bin", "true", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(tc.user)
			time.Sleep(1100 * time.Millisecond) // see record.begun
			s := w.begin()
			w.sh(tc.agent)
			s.Kill()
			reports := w.sweep()
			if len(reports) != 1 {
				t.Fatalf("%+v", reports)
			}
			if got := strings.Join(lines(reports[0]), " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if text := reports[0].Text(w.home, 0); tc.want != "" && !strings.Contains(text, "; by that session, or later") {
				t.Error(text)
			}
		})
	}
}

// TestAnOrdinaryEditHidesAHook: the one is told with what makes it ordinary, the other by its folder.
func TestAnOrdinaryEditHidesAHook(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ user, agent, want string }{
		"beside it":         {hooked, "echo x >>.githooks/pre-commit; echo b >>.githooks/Makefile", "changed .githooks, changed .githooks/Makefile"},
		"and what is worse": {hooked, "echo x >>.githooks/pre-commit; echo b >>.githooks/.envrc", "changed .githooks, new .githooks/.envrc"},
		"itself":            {hooked + "git config core.hooksPath x; git config core.fsmonitor ./.githooks/Makefile", "echo b >>.githooks/Makefile", "changed .githooks/Makefile, changed .githooks/Makefile"},
		"behind a link":     {"git init -q; echo a >Makefile; ln -s Makefile .envrc; git add .; git commit -qm a", "echo b >>Makefile", "changed .envrc, changed Makefile"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(tc.user)
			if got := strings.Join(lines(w.session(tc.agent)), ", "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAFloodOfCheckoutsHidesAHook: each has another number in its text.
func TestAFloodOfCheckoutsHidesAHook(t *testing.T) {
	w := newWorld(t)
	w.sh(hooked)
	text := w.session(`echo x >>.githooks/pre-commit
		for i in $(seq 10 60); do git init -q .a$i; for j in $(seq $i); do mkdir .a$i/$j; : >.a$i/$j/Makefile; done; done
		echo x >z.sh; mkdir z; echo x >z/.envrc`).Text(w.home, 0)
	expect.Contains(t, text, ".githooks ", "z/.envrc", " more; --report-json")
}

// TestAKilledSessionsFolderIsReplaced by one that the user made: it is judged where it is now, and the new one is not.
func TestAKilledSessionsFolderIsReplaced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replace string
		judged  bool
	}{
		"by a clone":  {"git clone -q old/p p", false},
		"by a backup": {"cp -a old/p .; rm -r old", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; echo a >a; git add a; git commit -qm a; touch -d '2 days ago' a .git/config")
			s := w.begin()
			w.sh(`git init -q sub; git -C sub config core.fsmonitor "$EVIL"`)
			s.Kill()
			w.sh("cd; mkdir old; mv p old/p; " + tc.replace)
			config := w.sh("cat .git/config")
			told := w.sweep()
			if judged := len(told) > 0; judged != tc.judged {
				t.Errorf("judged: %t, %+v", judged, told)
			}
			if tc.judged {
				return
			}
			wantLines(t, w.session("true"))
			if got := w.sh("cat .git/config"); got != config || !strings.Contains(got, "url") {
				t.Errorf("was\n%s\nis\n%s", config, got)
			}
			if told = w.sweep(w.path("old/p")); len(told) != 1 {
				t.Errorf("%+v", told)
			}
			w.sh("git -C ../old/p/sub status")
			w.wantNotTaken()
		})
	}
}

// TestALinkLeadsToWhatTheHostRuns: a tool of the user's writes through it, as `git format-patch` does.
func TestALinkLeadsToWhatTheHostRuns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ agent, want string }{
		"to a tracked hook":        {"ln -s .githooks/pre-commit 0001-Fix.patch", "new 0001-Fix.patch"},
		"to the folder":            {"ln -s .githooks patches", "new patches"},
		"to a hook to be":          {"ln -s .githooks/post-commit x", "new x"},
		"to what a shell runs":     {"mkdir d; ln -s ../.envrc d/x", "new d/x"},
		"to git's own":             {"ln -s .git/config x", "new x"},
		"to a program of packages": {"mkdir -p node_modules/.bin; ln -s node_modules/.bin/tsc x", "new node_modules/.bin new x"},
		"to another file":          {"ln -s a x; ln -s nothing y", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh(hooked)
			if got := strings.Join(lines(w.session("echo '*' >.git/info/exclude; "+tc.agent)), " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
