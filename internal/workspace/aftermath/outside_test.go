package aftermath_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/gitconfig"
	"claudebox/internal/workspace/project"
)

// TestTheUsersEditorWritesThroughALink: what looks like a file of the project
// is one of the user's own.
func TestTheUsersEditorWritesThroughALink(t *testing.T) {
	w := newWorld(t)
	w.sh("echo mine >$HOME/rc; mkdir d; ln -s $HOME/rc old; ln -s $HOME/none dangling")
	time.Sleep(1100 * time.Millisecond) // what is a second older than a session counts as its own
	agent := `ln -s $HOME/rc notes.txt; ln -s ../../rc d/relative; ln -s $HOME/absent/deep to-be; ln -s d/../dangling chain; ln -s ../old d/again
		ln -s $HOME folder; ln -s folder/rc two; mkdir -p e/f; ln -s $HOME/rc e/f/deep; ln -s / root; ln -s /run/claudebox/held/../../../etc/x up`
	harmless := `ln -s notes2 in; ln -s $HOME/p/d abs; ln -s $HOME/p/absent inside; ln -s loop loop; ln -s /nix/store/x-y/bin/z result; mkdir node_modules; ln -s $HOME/rc node_modules/x; ln -s /run/claudebox/held/x/s/1/g held`
	want := []string{"new chain", "new d/again", "new d/relative", "new e/f/deep", "new folder", "new notes.txt", "new root", "new to-be", "new two", "new up"}
	s := w.begin()
	w.sh(agent + "\n" + harmless)
	s.Kill()
	reports := w.sweep()
	if len(reports) != 1 {
		t.Fatalf("%+v", reports)
	}
	wantLines(t, reports[0], want...)
	if text := reports[0].Text(w.home, 0); !strings.Contains(text, "a link to "+w.path("rc")+", outside the project: your tools read and write there\n") ||
		!strings.Contains(text, w.path("absent/deep")) || !strings.Contains(text, w.path("none")) {
		t.Error(text)
	}
	time.Sleep(1100 * time.Millisecond)
	wantLines(t, w.session("touch x; mv d/relative d/moved; ln -sf $HOME/rc two"), "new d/moved", "new two")
}

// Promise: nothing planted for your tools, unsaid.
func TestLinksThatTheAgentFloodsTheReportWithAreCounted(t *testing.T) {
	w := newWorld(t)
	r := w.session("for n in $(seq 100); do ln -s $HOME/$n a$n; done; echo x >Makefile")
	if len(r.Changes) != 22 || !strings.Contains(fmt.Sprint(r.Changes), "80 more links") || !strings.Contains(r.Text(w.home, 0), "Makefile") {
		t.Errorf("%+v", r.Changes)
	}
}

// A submodule that is a link has no .git of its own to be renamed: no name there
// is free, and the session would not end.
func TestASubmoduleThatIsALink(t *testing.T) {
	w := newWorld(t)
	w.sh("git init -q; git commit -qm x --allow-empty")
	r := w.session(`git init -q b; git -C b commit -qm x --allow-empty; git -C b config core.fsmonitor "$EVIL"; ln -s b a; ln -s /nowhere/else c
		for d in a c; do git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),$d; done`)
	wantLines(t, r, "taken out b/.git/HEAD", "new c")
	w.sh("git status; git -C a status")
	w.wantNotTaken()
}

// A repository that is harmless by now may be changed by a later session.
func TestALinkToAnAgentsOwnFoldersGoes(t *testing.T) {
	w := newWorld(t)
	w.sh("mkdir -p ../.claudebox/instances/x/cache/l; git init -q")
	s := w.begin()
	w.sh("ln -s ../.claudebox/instances/x/cache/l l")
	if r := s.End(); len(r.Changes) != 1 || r.Changes[0].Change != aftermath.TakenOut || r.Changes[0].Path != "l" {
		t.Errorf("got %+v", r)
	}
	if _, err := os.Lstat(w.path("p/l")); err == nil {
		t.Error("it stays")
	}
}

// TestTheUsersConfigurationNamesAPathInAnyRepository: git takes a relative path
// of the user's own configuration from the top of the working tree, or from the
// git folder where there is none.
func TestTheUsersConfigurationNamesAPathInAnyRepository(t *testing.T) {
	t.Parallel()
	const evil = `e() { mkdir -p $(dirname $1); printf "#!/bin/sh\n$EVIL\n" >$1; chmod +x $1; }; `
	const push = `e %[1]s/.githooks/pre-receive; e %[1]s/.githooks/reference-transaction`
	for name, tc := range map[string]struct{ user, agent, host, gone string }{
		"a bare one made inside":     {"", evil + "git init -q --bare d; " + fmt.Sprintf(push, "d"), "git push -q d HEAD:x", "d/.githooks"},
		"that is called by the name": {"", evil + "git init -q --bare d.git; " + fmt.Sprintf(push, "d.git"), "git push -q d.git HEAD:x", "d.git/HEAD"},
		"where tools fill": {
			"git init -q node_modules/x; git -C node_modules/x commit -qm x --allow-empty; sleep 1.1",
			evil + "e node_modules/x/.githooks/post-checkout", "git -C node_modules/x checkout -qb y", "node_modules/x/.githooks",
		},
		"a bare one where tools fill": {
			"git init -q --bare .venv/src/d; sleep 1.1", evil + fmt.Sprintf(push, ".venv/src/d"), "git push -q .venv/src/d HEAD:x", ".venv/src/d/.githooks",
		},
		"one of the user's":  {"git init -q n; git -C n commit -qm x --allow-empty", evil + "e n/.githooks/post-checkout", "git -C n checkout -qb y", "n/.githooks"},
		"a linked worktree":  {"git worktree add -q w", evil + "e w/.githooks/post-checkout", "git -C w checkout -qb y", "w/.githooks"},
		"one that was there": {"git init -q; mkdir .githooks; touch .githooks/x", "true", "git checkout -qb y", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; git commit -qm x --allow-empty; " + tc.user)
			w.userGit = []project.UserGit{{Dir: w.home, Entries: []gitconfig.Entry{{Section: "core", Name: "hookspath", Value: ".githooks"}}}}
			w.sh("git config --global core.hooksPath .githooks")
			var want []string
			if tc.gone != "" {
				for _, gone := range strings.Fields(tc.gone) {
					want = append(want, "taken out "+gone)
				}
			}
			wantLines(t, w.session(tc.agent), want...)
			w.sh(tc.host)
			w.wantNotTaken()
		})
	}
}

// TestTheUsersConfigurationRunsAScriptInAnyRepository: what an interpreter is to run is no program of PATH, nor what has
// a file's name.
func TestTheUsersConfigurationRunsAScriptInAnyRepository(t *testing.T) {
	t.Parallel()
	for command, gone := range map[string]string{
		"sh conv.sh": "conv.sh", "sh -e conv": "conv", "exec python3 -u conv": "conv", "env sh conv": "conv", "xyz conv.awk": "conv.awk", ". conv": "conv",
		"conv.sh": "", "less conv": "", "push conv": "", "sh -c conv": "", "conv -x": "",
	} {
		t.Run(command, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; git commit -qm x --allow-empty")
			w.userGit = []project.UserGit{{Dir: w.home, Entries: []gitconfig.Entry{{Section: "diff", Subsection: "x", Sub: true, Name: "textconv", Value: command}}}}
			files := strings.Fields("conv conv.sh conv.awk")
			got := lines(w.session("git init -q n; touch " + strings.Join(files, " ") + " n/" + strings.Join(files, " n/")))
			for _, file := range files {
				for _, at := range []string{file, "n/" + file} {
					if slices.Contains(got, "taken out "+at) != (file == gone) {
						t.Errorf("%s: %q", at, got)
					}
				}
			}
		})
	}
}

// TestWhatAConfigurationNamesLiesBehindALink: a path that git obeys does not exist yet. The agent makes a folder above
// it a link, so that nothing lies at the path itself that could be renamed.
func TestWhatAConfigurationNamesLiesBehindALink(t *testing.T) {
	t.Parallel()
	const evil = `e() { mkdir -p $(dirname $1); printf "#!/bin/sh\n$EVIL\n" >$1; chmod +x $1; }; `
	for name, tc := range map[string]struct{ user, agent, host, gone string }{
		"a program of the repository": {"git config core.fsmonitor ./bin/fsm", "e b2/fsm; ln -s b2 bin", "git status", "bin"},
		"deep":                        {"mkdir a; git config core.fsmonitor ./a/b/c/fsm", "e b2/c/fsm; ln -s ../b2 a/b", "git status", "a/b"},
		"outside":                     {"git config core.fsmonitor ./bin/fsm", "e ../o/fsm; ln -s ../o bin", "git status", "bin"},
		"hooks of one made inside":    {"", "git init -q d; e d/t/h/post-checkout; ln -s t d/tools", "git -C d commit -qm x --allow-empty; git -C d checkout -qb y", "d/tools"},
		"of one that tools made":      {"git init -q .venv/src/d; sleep 1.1", "e .venv/src/d/t/h/post-checkout; ln -s t .venv/src/d/tools", "git -C .venv/src/d commit -qm x --allow-empty; git -C .venv/src/d checkout -qb y", ".venv/src/d/tools"},
		"where tools fill":            {"mkdir -p .venv/src", "git init -q .venv/src/d; e .venv/src/d/t/h/post-checkout; ln -s t .venv/src/d/tools", "git -C .venv/src/d commit -qm x --allow-empty; git -C .venv/src/d checkout -qb y", ".venv/src/d/tools"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("git init -q; git commit -qm x --allow-empty; git config --global core.hooksPath tools/h; " + tc.user)
			w.userGit = []project.UserGit{{Dir: w.home, Entries: []gitconfig.Entry{{Section: "core", Name: "hookspath", Value: "tools/h"}}}}
			r := w.session(evil + tc.agent)
			if !slices.Contains(lines(r), "taken out "+tc.gone) || len(r.Failures) > 0 {
				t.Errorf("got %q, failures %q", lines(r), r.Failures)
			}
			w.sh(tc.host)
			w.wantNotTaken()
			if again := w.session("true"); len(again.Failures) > 0 {
				t.Errorf("the next session fails: %q", again.Failures)
			}
		})
	}
}

// TestARepositorysConfigurationNamesAPathInEachWorktree: git takes a relative
// path from the top of the worktree where it runs.
func TestARepositorysConfigurationNamesAPathInEachWorktree(t *testing.T) {
	t.Parallel()
	const good = `mkdir gh; echo true >gh/post-checkout; chmod +x gh/post-checkout; `
	for name, tc := range map[string]struct {
		user, file string
		told       bool // it is tracked: then a change is told, else none can be made
	}{
		"the project, a folder to be made": {"git worktree add -q ../p", "gh", false},
		"the project, a tracked folder":    {good + "git add .; git commit -qm y; git worktree add -q ../p", "gh/post-checkout", true},
		"the project, a program":           {good + "git add .; git commit -qm y; git worktree add -q ../p; git config core.fsmonitor ./gh/post-checkout", "gh/post-checkout", true},
		"one below, a folder to be made":   {"mv ../m/.git ../p; cd ../p; git worktree add -q w", "w/gh", false},
		"one below, a folder":              {"mv ../m/.git ../p; cd ../p; git worktree add -q w; cd w; " + good, "w/gh", false},
		"one below, a tracked folder":      {good + "git add .; git commit -qm y; mv ../m/.git gh ../p; cd ../p; git worktree add -q w", "w/gh/post-checkout", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sh("mkdir ../m; cd ../m; git init -q; git commit -qm x --allow-empty; git config core.hooksPath gh; " + tc.user)
			held := slices.ContainsFunc(w.open().Mounts, func(m project.Mount) bool { return m.Mode == project.ReadOnly && m.Path == w.path("p/"+tc.file) })
			if held == tc.told {
				t.Errorf("held: %t", held)
			}
			r := w.session("mkdir -p " + filepath.Dir(tc.file) + "; echo false >>" + tc.file)
			if told := strings.Contains(strings.Join(lines(r), " "), "changed "+strings.TrimSuffix(tc.file, "/post-checkout")); tc.told && !told {
				t.Errorf("told: %q", lines(r))
			}
		})
	}
}

// TestARepositoryAmongTheConversations is where Claude Code of the user works,
// too, and perhaps below a repository of theirs.
func TestARepositoryAmongTheConversations(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		w := newWorldHere(t)
		w.sh("git init -q; mkdir $HOME/conversations")
		s := w.begin()
		w.sh(`git init -q $HOME/conversations/a; cd $HOME/conversations/a; git config core.fsmonitor "$EVIL"`)
		r := w.ended(s, killed)
		wantLines(t, r, "taken out "+w.path("conversations/a/.git/HEAD"))
		w.sh("git -C $HOME/conversations/a status")
		w.wantNotTaken()
	}
}
