//go:build lab

package sandbox_test

import (
	"strings"
	"testing"

	"claudebox/checks/kit/trial"
)

// withModules is a repository with a submodule, in which there is another one.
func withModules(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity+"[protocol \"file\"]\n\tallow = always\n")
	w.plain(t, `for d in deep lib; do git init -q -b main ../$d; (cd ../$d; echo $d >$d; git add .; git commit -qm $d); done
		git -C ../lib submodule -q add ../deep a/in; git -C ../lib commit -qm in
		git submodule -q add ../lib my/sm; git commit -qm sm; git submodule -q update --init --recursive`)
	return w
}

// bump commits in both submodules and in what they are in.
const bump = `n() { git -C "$1" "${@:2}"; }
echo new >my/sm/a/in/new; n my/sm/a/in add new; n my/sm/a/in commit -qm deeper
n my/sm commit -qam bump; echo lib2 >my/sm/lib; n my/sm commit -qam lib; git commit -qam bump
`

// What the agent commits in a submodule, and in one of that, crosses as what it commits in the repository around does:
// a merge of the branch by plain git names nothing that is not there.
func TestWhatIsCommittedInASubmoduleOfABranchCrosses(t *testing.T) {
	w := withModules(t)
	refs := `git -C my/sm for-each-ref; git -C my/sm/a/in for-each-ref`
	before := w.plain(t, refs)
	w.branchOf(t, "feat", `git -C my/sm status; git log -1`)
	wantEqual(t, w.plain(t, refs), before) // where nothing was made, nothing crosses
	got := w.branchOf(t, "feat", bump)
	if strings.Contains(got.stderr, "not committed") {
		t.Error(got.stderr)
	}
	for _, line := range []string{
		"submodule my/sm: commits that your HEAD does not have: 2;", "submodule my/sm/a/in: commits that your HEAD does not have: 1;",
	} {
		if !strings.Contains(got.stderr, line) {
			t.Errorf("it does not say %q: %s", line, got.stderr)
		}
	}
	wantEqual(t, w.plain(t, `git merge -q feat && git submodule -q update --recursive && cat my/sm/lib my/sm/a/in/new
		git status --porcelain; git -C my/sm log -1 --format=%s feat; git -C my/sm/a/in log -1 --format=%s feat
		git -C my/sm fsck --strict --no-dangling; git -C my/sm/a/in fsck --strict --no-dangling`), "lib2\nnew\nlib\ndeeper")
	again := w.branchOf(t, "feat", `git -C my/sm commit -q --amend -m amended; git commit -qam amended`) // the gitlink is another one
	if strings.Contains(again.stderr, "did not cross") {
		t.Error(again.stderr)
	}
	wantEqual(t, w.plain(t, `git merge -q feat && git submodule -q update --recursive; git -C my/sm log -1 --format=%s`), "amended")
	w.plain(t, `git -C my/sm switch -q feat`) // the branch is where the user works now
	taken := w.branchOf(t, "feat", `git -C my/sm commit -qm more --allow-empty; git -C my/sm branch own; git commit -qam more`)
	if !strings.Contains(taken.stderr, "the agent's commits are on claudebox/feat/feat") {
		t.Error(taken.stderr)
	}
	wantEqual(t, w.plain(t, `git -C my/sm log -1 --format=%s; git -C my/sm status --porcelain; git merge -q feat && git submodule -q update; git -C my/sm log -1 --format=%s`), "amended\nmore")
	if got := run(t, w.claudebox("branch", "remove", "feat")); got.status != 0 {
		t.Errorf("all has crossed: %+v", got)
	}
}

// A submodule's git folder is the agent's: whatever it makes of that, nothing comes into the user's but commits that
// their git takes, on the session's own branch; nothing of theirs moves, and no program of the agent's runs.
func TestAHostileSubmoduleOfABranch(t *testing.T) {
	for name, tc := range trial.Some(3, map[string]struct{ agent, says string }{
		"a link to the repository around":  {`mv .git/modules/my/sm /tmp/x; ln -s ../.. .git/modules/my/sm; git commit -qm x --allow-empty`, ""},
		"a link to a folder of the user's": {`mv .git/modules/my /tmp/x; ln -s ` + "$HOME/../" + `$(basename "$HOME")/other/.git .git/modules/my; git commit -qm x --allow-empty`, ""},
		"a link on the host":               {`rm -rf .git/modules/my/sm; ln -s "$OTHER" .git/modules/my/sm; git commit -qm x --allow-empty`, ""},
		"a branch of the user's is moved": {
			`cd my/sm; git update-ref refs/heads/main $(git commit-tree -m forged 'HEAD^{tree}'); git update-ref 'refs/heads/$(ran)' HEAD`, "signs that a prompt or a shell could obey",
		},
		"programs in its settings": {`cd my/sm; p="$PWD/../../p"; printf '#!/bin/sh\ntouch "$(dirname "$0")/ran" "$HOME/ran" "$OUT/ran"' >$p; chmod +x $p
			for k in core.fsmonitor core.pager core.sshCommand diff.external uploadpack.packObjectsHook core.gitProxy core.alternateRefsCommand gpg.program core.editor; do git config $k "$p"; done
			git config core.worktree ../../../..; git config --add include.path "$OTHER/config"; cp $p ../../.git/modules/my/sm/hooks/reference-transaction 2>/dev/null || { mkdir ../../.git/modules/my/sm/hooks; cp $p ../../.git/modules/my/sm/hooks/reference-transaction; }
			GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=false git -c core.hooksPath=/dev/null commit -qm x --allow-empty || :`, ""},
		"alternates to the user's":   {`cd my/sm; echo "$OTHER/objects" >>../../.git/modules/my/sm/objects/info/alternates; git update-ref HEAD $OTHERS 2>/dev/null || echo $OTHERS >../../.git/modules/my/sm/HEAD`, "my/sm"},
		"a commit without its files": {`cd my/sm; echo lost >lost; git add lost; git commit -qm lost; o=$(git rev-parse HEAD:lost); rm -f ../../.git/modules/my/sm/objects/${o:0:2}/${o:2}; cd ../..; git commit -qam x`, "my/sm"},
		"a file that git refuses": {`cd my/sm; t=$(printf '100644 blob %s\t.git\0' $(git hash-object -w lib) >/dev/null; { printf '100644 .git\0'; git rev-parse HEAD:lib | xxd -r -p; } | git hash-object -t tree -w --literally --stdin)
			git update-ref HEAD $(git commit-tree -m evil $t)`, "your git does not take it"},
		"no repository":               {`echo x >.git/modules/my/sm/HEAD; git commit -qm x --allow-empty`, "my/sm"},
		"another path in .gitmodules": {`printf '[submodule "../../../x"]\n\tpath = ../other\n\turl = x\n[submodule "my/sm"]\n\tpath = ../../other\n\turl = --upload-pack=touch\n' >.gitmodules; git -C my/sm commit -qm x --allow-empty; git commit -qam x`, ""},
	}) {
		t.Run(name, func(t *testing.T) {
			w := withModules(t)
			w.plain(t, `git init -q -b main ../other; cd ../other; echo secret >secret; git add .; git commit -qm secret; git config other.marked yes`)
			state := `for d in my/sm my/sm/a/in ../other; do git -C $d for-each-ref refs/heads/main refs/remotes refs/tags; git -C $d config -l --local; git -C $d status --porcelain; git -C $d rev-parse HEAD; done
				cat my/sm/.git; ls .git/modules/my/sm .git/modules/my/sm/hooks; ls ..; git config -l --local; ls -A`
			w.plain(t, `git -C my/sm checkout -q main`)
			before := w.plain(t, state)
			got := w.branchOf(t, "feat", `export OTHER=`+w.path("other/.git")+` OTHERS=`+w.plain(t, "git -C ../other rev-parse HEAD")+` OUT=`+w.path("..")+"\n"+tc.agent)
			if !strings.Contains(got.stderr, tc.says) {
				t.Errorf("it does not say %q: %s", tc.says, got.stderr)
			}
			wantEqual(t, w.plain(t, state), before)
			wantEqual(t, w.plain(t, `for m in my/sm my/sm/a/in; do git -C $m fsck --strict --no-dangling 2>&1; done; git -C my/sm cat-file -t $(git -C ../other rev-parse HEAD:secret) 2>/dev/null || :
				git -C my/sm for-each-ref --format='%(refname)' refs/heads | grep -v 'heads/\(main\|feat\|claudebox/feat/main\)$' || :; find .. -name ran 2>/dev/null || :`), "")
			w.branchOf(t, "feat", "git log -1")
			run(t, w.claudebox("branch", "list"))
			wantEqual(t, w.plain(t, state), before)
		})
	}
}
