package handover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// first has the programs of claudebox's run a script of the user's before they do something for the first time: git
// when it is called with a word, or bwrap (empty).
func (w *world) first(word, script string) {
	w.Helper()
	dir := w.TempDir()
	once := "[ -e " + dir + "/done ] || { touch " + dir + "/done; cd " + w.project + "; ( " + script + " ) </dev/null >&2; }"
	if word == "" {
		must.Program(w, dir+"/bwrap", "#!/bin/bash\n"+once+"\nexec "+w.tools.Bwrap+" \"$@\"\n")
		w.tools.Bwrap = dir + "/bwrap"
		return
	}
	text := "#!/bin/bash\ncase \" $* \" in *\" " + word + " \"*) " + once + ";; esac\nexec " + w.tools.Git + " \"$@\"\n"
	must.Program(w, dir+"/git", text)
	w.tools.Path = append([]string{dir}, w.tools.Path...)
}

// A process outside, or the agent of a session in a folder above, exchanges what stands where a repository of the
// agent's becomes the user's: git followed a link there into another repository, and what had come was removed.
func TestSomethingElseComesToThePlaceOfARepositoryThatBecomesTheUsers(t *testing.T) {
	t.Parallel()
	for name, come := range map[string]string{
		"a link to another repository": `ln -s ../other/.git r0/.git`,
		"a file that leads to one":     `echo "gitdir: ../other/.git" >r0/.git`,
		"a repository":                 `cp -r other/.git r0/.git`,
		"a folder":                     `mkdir r0/.git; echo mine >r0/.git/notes`,
		"a link in the folder's place": `mv r0 gone; ln -s other r0`,
	} {
		for _, moment := range []string{"before", "init", "config", "update-ref", ""} {
			t.Run(name+", "+moment, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.user("mkdir other && cd other && git init -q && echo x >x && git add x && git commit -qm other")
				all := w.made(1, "git config remote.o.url https://h/x")
				if moment == "before" {
					w.user(come)
				} else {
					w.first(moment, come)
				}
				const state = `(find other -type f -print0 | sort -z | xargs -0 sha256sum; find other -printf '%p %y %l\n' | sort) | sha256sum`
				before := w.user(state)
				got := Adopt(Request{Tools: w.tools}, all)[0]
				if after := w.user(state); after != before {
					t.Error("another repository was changed")
				}
				if strings.Contains(name, "folder's") {
					if moment != "before" && (got.Err != nil || w.user("git -C gone log --format=%s") != "one") {
						t.Errorf("it is not where its folder went: %v", got.Err)
					}
					return
				}
				if got.Err == nil || !strings.Contains(got.Err.Error(), errTaken.Error()) {
					t.Errorf("got %v", got.Err)
				}
				w.user("rm -rf want; mkdir -p want/r0; cd want; cp -r ../other .; " + come)
				w.user("diff -r --no-dereference want/r0/.git r0/.git; rm -r want")
				if left := w.user("ls -A r0"); left != ".git\nf\ng" {
					t.Errorf("there are %s", left)
				}
				w.user("rm -rf r0/.git")
				if again := Adopt(Request{Tools: w.tools}, all)[0]; again.Err != nil || !w.isUsers(all[0]) {
					t.Errorf("it does not become the user's once the place is free: %v", again.Err)
				}
			})
		}
	}
}

// A repository that came to the path of the one with which a session began lacked its branches: they counted as removed,
// and what the agent committed came there.
func TestNothingCrossesToARepositoryThatCameToThePlaceOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("git branch spare; git init -q other; git -C other commit -q --allow-empty -m other")
	w.begin()
	w.agent("git commit -q --allow-empty -m two")
	w.user("mv .git gone; mv other/.git .git")
	told := strings.Join(w.end(), "\n")
	if !strings.Contains(told, errElsewhere.Error()) {
		t.Errorf("told %q", told)
	}
	if got := w.user("git log --all --format=%s"); got != "other" {
		t.Errorf("the other one has %s", got)
	}
	w.user("mv .git other/; mv gone .git")
	w.begin()
	w.end()
	if got := w.user("git log --format=%s; git branch --list spare"); got != "two\none\n  spare" {
		t.Errorf("once it is back it has %s", got)
	}
}

// Where claudebox is killed just after the user's git folder has come to its place, the next session has the agent's.
func TestAKillBetweenTheTwoMovesOfARepositoryThatBecomesTheUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.made(1, "echo kept >.git/hooks/agents")
	home := t.TempDir()
	all[0].Folder = filepath.Join(home, "instances", "i", Folder, Name(all[0].Outer))
	if got := Adopt(Request{Tools: w.tools}, all)[0]; got.Err != nil || !Recall(home).Has(all[0].Outer) {
		t.Fatal(got.Err)
	}
	p := Place{Outer: all[0].Outer, Folder: all[0].Folder, Trees: []Tree{{".", filepath.Dir(all[0].Outer)}}}
	must.Do(t, os.Rename(p.Inner(), all[0].At))
	w.places = append(w.places, p)
	w.begin()
	if got := w.agent("cat r0/.git/hooks/agents; cd r0; git commit -qm two; git log --format=%s"); got != "kept\ntwo\none" {
		t.Errorf("inside there is %s", got)
	}
	w.end()
	if got := w.user("git -C r0 log --format=%s"); got != "two\none" {
		t.Errorf("outside there is %s", got)
	}
	w.user("mv r0/.git gone; git init -q r0")
	k, gone := Recall(home), w.project+"/gone"
	if k.Has(all[0].Outer) || k.Has(gone) || !k.Has(gone, all[0].Outer) {
		t.Error("another repository there has become the user's, or theirs is not known where they moved it")
	}
}

// Where claudebox was killed amid it, git inside said of each such repository that it cannot find some objects.
func TestARepositoryThatBecomesTheUsersNamesNoObjectsThatAreNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.made(1, "true")
	failed := w.TempDir() + "/failed"
	look := "#!/bin/bash\n[ ! -s " + all[0].At + "/" + alternates + " ] || touch " + failed + "\nexec " + w.tools.Bwrap + " \"$@\"\n"
	w.tools.Bwrap = filepath.Dir(failed) + "/bwrap"
	must.Program(t, w.tools.Bwrap, look)
	if got := Adopt(Request{Tools: w.tools}, all)[0]; got.Err != nil || !w.isUsers(all[0]) {
		t.Fatal(got.Err)
	}
	if _, err := os.Lstat(failed); err == nil {
		t.Error("it named objects before they were there")
	}
	if text := must.Read(t, all[0].Folder+"/inner/"+alternates); !strings.HasPrefix(text, "/run/claudebox/git/") {
		t.Errorf("it has %q now", text)
	}
}

func TestARepositoryBecomesTheUsersWhereOneWasBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := w.TempDir()
	for range 2 {
		all := w.made(1, "true")
		all[0].Folder = folder
		if got := Adopt(Request{Tools: w.tools}, all)[0]; got.Err != nil || !w.isUsers(all[0]) {
			t.Fatal(got.Err)
		}
		w.user("rm -rf r0")
	}
}

// The instance, what was held back, and the project can lie on three file systems.
func TestARepositoryBecomesTheUsersOnAnotherFileSystem(t *testing.T) {
	t.Parallel()
	memory, err := os.MkdirTemp("/dev/shm", "handover-")
	if err != nil || device(memory) == device(t.TempDir()) {
		t.Skip("there is no other file system")
	}
	t.Cleanup(func() { os.RemoveAll(memory) })
	for name, lay := range map[string]func(m *Made){
		"the agent's": func(m *Made) { m.At = memory + "/at" },
		"the place":   func(m *Made) { m.Folder = memory + "/place" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			all := w.made(1, "true")
			was := all[0].At
			lay(&all[0])
			w.user("[ " + was + " = " + all[0].At + " ] || mv " + was + " " + all[0].At)
			if got := Adopt(Request{Tools: w.tools}, all)[0]; got.Err != nil || !w.isUsers(all[0]) {
				t.Fatal(got.Err)
			}
			w.places = append(w.places, all[0].place(filepath.Dir(all[0].Outer)))
			w.begin()
			w.agent("cd r0; git commit -qm two")
			if told := w.end(); len(told) > 0 || w.user("git -C r0 log --format=%s; ls -A r0") != "two\none\n.git\nf\ng" {
				t.Errorf("%s", told)
			}
			if _, err := os.Lstat(all[0].At); err == nil {
				t.Error("what was copied is there still")
			}
		})
	}
}

// The .git file of a submodule that the agent adds to a repository of its own leads to where that was inside. What was
// committed in the submodule alone was the user's nowhere, and nothing said so.
func TestASubmoduleInARepositoryOfTheAgentsBecomesTheUsers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		evil    string
		crosses bool
	}{
		"as git makes it":               {"true", true},
		"held back elsewhere meanwhile": {"echo gitdir: /run/claudebox/held/other/.held/session/1/g/modules/sub >.git", true},
		"a path of the host's":          {"echo gitdir: $(realpath ../.git/modules/sub) >.git", false},
		"another one":                   {"echo gitdir: $INSIDE/1/g/modules/other >.git", false},
		"another session's":             {"echo gitdir: ${INSIDE}s/1/g/modules/sub >.git", false},
		"a link":                        {"mv .git dotgit; ln -s dotgit .git", false},
		"a folder that was not given":   {"cd ..; mv sub ..; ln -s ../sub sub", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const inside = "/run/claudebox/held/key/.held/session"
			w := newWorld(t)
			all := w.made(1, `git init -q ../lib; git -C ../lib commit -q --allow-empty -m lib
				git -c protocol.file.allow=always submodule add -q ../lib sub; git commit -qm sub; cd sub; git commit -q --allow-empty -m inside`)
			w.user("cd r0/sub; rm .git; git config -f " + all[0].At + "/modules/sub/config core.worktree $(realpath -m --relative-to " + inside + "/1/g/modules/sub .); echo gitdir: " + inside + "/1/g/modules/sub >.git")
			w.user("cd r0/sub; INSIDE=" + inside + "; " + tc.evil)
			all[0].Inside = inside + "/1/g"
			got := Adopt(Request{Tools: w.tools, Given: []string{w.project}}, all)[0]
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			log := w.user("git --git-dir r0/.git/modules/sub log --format=%s 2>&1 || :")
			if tc.crosses != (log == "inside\nlib") {
				t.Fatalf("the user's submodule has %s; %v", log, got.Told)
			}
			if tc.crosses && w.user("cd r0/sub; git status --porcelain; cat .git; git log --format=%s") != "gitdir: ../.git/modules/sub\ninside\nlib" {
				t.Error("its working tree does not lead there")
			}
		})
	}
}
