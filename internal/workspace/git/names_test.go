package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/internal/workspace/git"
)

// gone plants files in a repository of the user's, and lists which of them went.
func gone(t *testing.T, plants ...string) (went []string) {
	t.Helper()
	w := newWorld(t)
	_, err := w.sh("git init -q; git commit -qm x --allow-empty")
	must(t, err)
	before := w.look(nil, ".git")
	for _, plant := range plants {
		name, content, _ := strings.Cut(plant, "=")
		at := filepath.Join(w.dir, "p/.git", name)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.WriteFile(at, []byte(content), 0o644))
	}
	w.defuse(before, ".git")
	for _, plant := range plants {
		name, _, _ := strings.Cut(plant, "=")
		if _, err := os.Lstat(filepath.Join(w.dir, "p/.git", name)); err != nil {
			went = append(went, name)
		}
	}
	return went
}

func TestNamesThatGitDoesNotMakeGo(t *testing.T) {
	bad := []string{
		"lazygit.yml=x", "glab-cli/config.yml=x", "sl/config=x", "anything=x", "rr-cache/x/postimage=x", "index.lock=", "refs/heads/x.lock=",
		"gc.pid=1", "remotes/origin=URL: /x", "branches/origin=/x", "info/grafts=x", "info/other=x", "hooks/pre-push=x",
		"objects/info/alternates=/x/objects", "commondir=/x", "gitdir=/x", "COMMIT_EDITMSG=\x1b]0;x\a",
	}
	if went := gone(t, bad...); len(went) != len(bad) {
		t.Errorf("only these went: %q", went)
	}
	good := []string{
		"COMMIT_EDITMSG=a message\n", "MERGE_HEAD=0123456789012345678901234567890123456789\n", "ORIG_HEAD=0123456789012345678901234567890123456789\n",
		"info/exclude=*.o\n", "info/attributes=* -export-subst -export-ignore\n", "hooks/x.sample=x", "FETCH_HEAD=0123\tnot-for-merge\tbranch 'x' of y\n",
		"lfs/objects/12/34/1234=x", "BISECT_LOG=git bisect start\n", "BISECT_START=main\n", "packed-refs=# pack-refs\n", "gc.log=x\n",
	}
	if went := gone(t, good...); len(went) > 0 {
		t.Errorf("these went: %q", went)
	}
}

// Each file of a state under way that breaks its rule takes the whole state
// with it.
func TestGrammars(t *testing.T) {
	for _, bad := range []string{
		"rebase-merge/msgnum=$(x)", "rebase-merge/end=`x`", "rebase-apply/next=$(x)", "rebase-apply/last=1;x", "rebase-merge/head-name=refs/heads/$(x)",
		"rebase-merge/git-rebase-todo=exec x\n", "rebase-merge/git-rebase-todo=pick 1\nx y\n", "rebase-merge/done=pick 1 \x1b[2J\n",
		"rebase-apply/apply-opt= '--build-fake-ancestor=/x'", "rebase-apply/apply-opt= '--directory=/x'", "rebase-merge/strategy=../x",
		"rebase-merge/author-script=GIT_AUTHOR_NAME='x'; y\n", "rebase-merge/author-script=GIT_AUTHOR_NAME='a\u009b31mb'\n", "rebase-merge/unknown=a b; c", "rebase-merge/gpg_sign_opt=-Sx;y",
		"sequencer/todo=exec x\n", "sequencer/opts=[options]\n\tstrategy = ../x\n", "sequencer/opts=[core]\n\tpager = x\n",
		"info/attributes=* filter=x\n", "info/attributes=*.py ident\n", "info/attributes=*.sh working-tree-encoding=UTF-7\n", "info/attributes=* diff=x\n", "info/attributes=[attr]a filter=x\n", "BISECT_TERMS=x; y\n", "BISECT_NAMES=$(x)\n",
		"MERGE_MSG=\x1b[2J", "BISECT_START=$(x)\n", "shallow=x\n",
	} {
		if went := gone(t, bad); len(went) != 1 {
			t.Errorf("%q stays", bad)
		}
	}
	if went := gone(t,
		"rebase-merge/msgnum=1\n", "rebase-merge/end=3\n", "rebase-merge/head-name=refs/heads/a/b-c\n", "rebase-merge/git-rebase-todo=# x\npick 0123 a\nupdate-ref refs/heads/x\n",
		"rebase-merge/interactive=", "rebase-merge/author-script=GIT_AUTHOR_NAME='it'\\''s me'\nGIT_AUTHOR_EMAIL='a@b'\nGIT_AUTHOR_DATE='@1 +0000'\n",
		"rebase-merge/strategy_opts=", "rebase-merge/no-reschedule-failed-exec=", "rebase-apply/apply-opt=\n", "rebase-apply/0001=From x\n", "rebase-apply/keep=f\n",
		"sequencer/todo=pick 0123 a\n", "sequencer/opts=[options]\n\tedit = true\n",
	); len(went) > 0 {
		t.Errorf("these went: %q", went)
	}
}

func TestLinksAmongTheObjects(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh("mkdir ../mine; git init -q; git commit -qm x --allow-empty")
	must(t, err)
	before := w.look(nil, ".git")
	_, err = w.sh("rmdir .git/objects/pack; ln -s ../../../mine .git/objects/pack; mkdir -p .git/objects/00; ln -s ../../../../mine .git/objects/00/x; ln -s ../../../mine .git/objects/fe; mkdir -p .git/objects/pack.d/a/b/c")
	must(t, err)
	w.defuse(before, ".git")
	if out, _ := w.sh("find .git/objects -type l; find .git/objects -mindepth 4"); out != "" {
		t.Errorf("left: %s", out)
	}
}

func TestARepositoryWhereGitPutsNone(t *testing.T) {
	for _, at := range []string{"refs/evil", "lfs/evil", "logs/refs/evil"} {
		w := newWorld(t)
		_, err := w.sh("git init -q; git commit -qm x --allow-empty")
		must(t, err)
		before := w.look(nil, ".git")
		_, err = w.sh("git init -q --bare .git/" + at + "; git -C .git/" + at + " config alias.st '!touch " + w.dir + "/taken'")
		must(t, err)
		w.defuse(before, ".git")
		if out, _ := w.sh("git -C .git/" + at + " st"); w.taken() {
			t.Errorf("the host obeys %s: %s", at, out)
		}
	}
}

func TestWhatIsMovedAsideIsNoRepository(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh("git init -q; git commit -qm x --allow-empty")
	must(t, err)
	before := w.look(nil, ".git")
	_, err = w.sh("git init -q --bare .git/tool/evil; git -C .git/tool/evil config alias.st '!touch " + w.dir + "/taken'; git init -q .git/tool/e2; git -C .git/tool/e2 config alias.st '!touch " + w.dir + "/taken'")
	must(t, err)
	w.defuse(before, ".git")
	if out, _ := w.sh("cd .git/claudebox-aside/tool/evil && git st; cd ../e2 && git st"); w.taken() {
		t.Errorf("the host obeys: %s", out)
	}
}

// An agent may have taken the names, and the way there.
func TestWhatIsMovedAsideIsHinderedToBeNoRepository(t *testing.T) {
	for name, script := range map[string]string{
		"taken names":               `mkdir -p x/HEAD.claudebox-aside y; echo "gitdir: ../x" >y/.git; mkdir y/.git.claudebox-aside`,
		"a folder to list only":     `chmod 644 .`,
		"a folder on the way to it": `mkdir -p z/z; mv x z/z; chmod 644 z`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.sh("git init -q; git commit -qm x --allow-empty")
			must(t, err)
			before := w.look(nil, ".git")
			_, err = w.sh("mkdir .git/tool; cd .git/tool; git init -q --bare x; git -C x config alias.st '!touch " + w.dir + "/taken'; " + script)
			must(t, err)
			w.defuse(before, ".git")
			if out, _ := w.sh("chmod -R u+rwX .git; cd .git/claudebox-aside/tool; for d in x y z z/z/x; do git -C $d st; done"); w.taken() {
				t.Errorf("the host obeys: %s", out)
			}
		})
	}
}

// Nor is the folder with what was moved: its names would make one together.
func TestWhatIsMovedAsideMakesNoRepositoryTogether(t *testing.T) {
	for name, script := range map[string]string{
		"as git has it": `mv objects refs ..; ln -s $PWD/../objects objects; ln -s $PWD/../refs refs; ln -sf refs/heads/../x HEAD`,
		"by commondir":  `ln -sf refs/heads/../x HEAD; mkdir ../e; mv objects refs config ../e; echo $PWD/../e >commondir`,
		"by a .git":     `git init -q ../e; cp config ../e/.git; echo "gitdir: $PWD/../e/.git" >.git`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.sh("git init -q; git commit -qm x --allow-empty; git config alias.st '!touch " + w.dir + "/taken'; git config core.bare false; git config core.worktree .\ncd .git\n" + script)
			must(t, err)
			w.defuse(none, ".git")
			if out, _ := w.sh("cd .git/claudebox-aside && git st"); w.taken() {
				t.Errorf("the host obeys: %s", out)
			}
		})
	}
}

// Where HEAD is a pipe, git waits for somebody to write to it.
func TestARepositoryWithAPipeForHEADMakesGitWait(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh("git init -q --bare x; rm x/HEAD; mkfifo x/HEAD")
	must(t, err)
	w.defuse(none, "x")
	if out, err := w.sh("cd x && test -p HEAD* || exit; timeout 20 git status; test $? != 124"); err != nil {
		t.Errorf("it does: %s", out)
	}
}

func TestWhatIsMovedAsideMakesGitWait(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh("git init -q; git commit -qm x --allow-empty")
	must(t, err)
	before := w.look(nil, ".git")
	_, err = w.sh("rm .git/HEAD; mkdir -p .git/tool/x; mkfifo .git/HEAD .git/tool/x/HEAD")
	must(t, err)
	w.defuse(before, ".git")
	for _, at := range []string{".", "tool/x"} {
		if out, err := w.sh("cd .git/claudebox-aside/" + at + " && test -p HEAD* || exit; timeout 20 git status; test $? != 124"); err != nil {
			t.Errorf("it does in %s, or nothing was moved: %s", at, out)
		}
	}
}

// What a remote leads to the agent may have made, as in its own folder.
func TestARemoteLeadsToWhatTheAgentMade(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh("git init -q --bare ../evil; git init -q n; git -C n config remote.origin.url " + w.dir + "/evil; git -C n config remote.here.url $PWD/mine; git init -q mine")
	must(t, err)
	var none git.Snapshot
	after := w.look(&none, "n/.git", "mine/.git")
	repairs, _ := git.Review(git.Judgement{Root: w.dir + "/p", After: after})
	for _, r := range repairs {
		if r.Rel == "n/.git/config" && strings.Contains(r.Why, "remote.origin.url") && !strings.Contains(r.Why, "here") {
			return
		}
	}
	t.Error("the address stays")
}

// The common folder of a worktree needs no HEAD: git takes what a commondir
// leads to for one that is no git place by itself.
func TestACommonFolderNeedsNoHEAD(t *testing.T) {
	w := newWorld(t)
	_, err := w.sh(`git init -q; git commit -qm x --allow-empty; git worktree add -q w; git init -q c; git -C c config core.fsmonitor "$EVIL"; git -C c config core.bare false
		mv c/.git/* c/; rm -r c/.git c/HEAD; echo $PWD/c >.git/worktrees/w/commondir`)
	must(t, err)
	w.sh("git -C w status")
	if !w.taken() {
		t.Fatal("the attack does not work at all")
	}
	must(t, os.Remove(w.dir+"/taken"))
	w.defuse(none, ".git", "w/.git")
	if out, _ := w.sh("git -C w status"); w.taken() {
		t.Errorf("the host obeys: %s", out)
	}
}

func TestAGitFileMeansWhatItSays(t *testing.T) {
	for name, text := range map[string]string{
		"it climbs out of a link": "gitdir: ../known/l/../.git",
		"it ends at a NUL":        "gitdir: ../../g/x\x00/../../../p/known/.git",
	} {
		w := newWorld(t)
		_, err := w.sh("mkdir -p ../g/d; git init -q known; ln -s ../../g/d known/l; mkdir s")
		must(t, err)
		before := w.look(nil, "known/.git")
		must(t, os.WriteFile(w.dir+"/p/s/.git", []byte(text+"\n"), 0o644))
		if changes := w.defuse(before, "known/.git", "s/.git"); len(changes) != 1 || changes[0].Rel != "s/.git" {
			t.Errorf("%s: %+v", name, changes)
		}
	}
}
