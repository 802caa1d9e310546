//go:build lab

package sandbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// flow is a day's work with git: what the user has before a session, and what the agent and the user do in turn while it
// runs. Before and after each turn both have the same, unless it is one "apart"; before one that "joins" they have not.
type flow struct {
	before string
	turns  []turn
	then   string // the user's, after the session; it prints want
	want   string
}

// turn is a script of one of them, and what it prints.
type turn struct{ who, do, want string }

// ahead has a branch `feature` with a commit that meets another one on main.
const ahead = `git switch -qc feature; echo f >ff; git add ff; git commit -qm feature; git switch -q main; echo m >ff; git add ff; git commit -qm mainff; `

var flows = map[string]flow{
	"a cherry-pick with a conflict, ended outside": {ahead, []turn{
		{"agent", "git cherry-pick feature >/dev/null 2>&1 || :", ""},
		{"user", "echo z >ff; git add ff; git cherry-pick --continue >/dev/null; git log -1 --format=%s", "feature"},
	}, "git status --porcelain", ""},
	"the user's rebase, aborted inside": {ahead + "git rebase -q feature >/dev/null 2>&1 || :", []turn{
		{"agent", "git rebase --abort", ""},
	}, "git status | head -1; git log -1 --format=%s", "On branch main\nmainff"},
	"a bisection inside": {"git commit -qm a --allow-empty; git commit -qm b --allow-empty", []turn{
		{"agent apart", "git bisect start HEAD HEAD~2 >/dev/null", ""},
		{"user apart", "git branch --show-current", "main"},
		{"agent joins", "git bisect reset >/dev/null 2>&1", ""},
	}, "git branch --show-current; git status --porcelain", "main"},
	"stashes to and fro": {"echo u >README.md; git stash -q", []turn{
		{"agent", "echo a >README.md; git stash -q -m one; echo b >README.md; git stash -q -m two", ""},
		{"user", "git stash list --format=%gs | wc -l", "3"},
		{"agent", "git stash pop -q; git checkout -q .", ""},
		{"user", "git stash drop -q; git stash pop -q; cat README.md", "u"},
	}, "git stash list", ""},
	"branches and tags of both": {ahead, []turn{
		{"agent", "git branch new; git branch -m feature old; git branch a/b; git tag t1; git tag -a -m x t2", ""},
		{"agent", "git branch -q -d new; git branch -q -D a/b; git branch a; git tag -d t1 >/dev/null", ""},
		{"user", "git branch -q -D old; git branch mine; git tag ut", ""},
	}, "git branch --format='%(refname:short)'; git tag", "a\nmain\nmine\nt2\nut"},
	"both switch, to and fro": {ahead, []turn{
		{"agent", "git switch -q feature", ""},
		{"user", "git branch --show-current; git status --porcelain; git switch -q -", "feature"},
		{"agent", "git branch --show-current; git switch -q -; git branch --show-current", "main\nfeature"},
	}, "git branch --show-current; cat ff", "feature\nf"},
	"the user commits, and the agent goes on from it": {"", []turn{
		{"user apart", "echo u >u; git add u; git commit -qm u", ""},
		{"agent", "git log -1 --format=%s; echo a >a; git add a; git commit -qm a", "u"},
	}, "git log -2 --format=%s; git status --porcelain", "a\nu"},
	"SHA-256": {"rm -rf .git; git init -q -b main --object-format=sha256; echo steps/ >>.git/info/exclude; git add .; git commit -qm first", []turn{
		{"agent", "echo x >x; git add x; git commit -qm x; git tag t; echo z >z; git add z; git stash -q", ""},
	}, "git log -1 --format=%s; git stash list | wc -l", "x\n1"},
	"reftable": {"rm -rf .git; git init -q -b main --ref-format=reftable 2>/dev/null || git init -q -b main; echo steps/ >>.git/info/exclude; git add .; git commit -qm first", []turn{
		{"agent", "echo x >x; git add x; git commit -qm x; git branch a/b; git switch -qc t", ""},
		{"user", "echo u >u; git add u; git commit -qm u", ""},
	}, "git log -2 --format=%s; git branch --show-current", "u\nx\nt"},
	"gc on both sides": {"", []turn{
		{"agent", "for i in 1 2 3; do echo $i >g; git add g; git commit -qm g$i; done; git branch side; git reset -q --hard HEAD~1; git gc -q --prune=now; git pack-refs --all", ""},
		{"user", "git gc -q --prune=now; git pack-refs --all; git log -1 --format=%s side", "g3"},
		{"agent", "git log -1 --format=%s side; echo e >g; git commit -qam e", "g3"},
	}, "git log -1 --format=%s; git fsck --strict --no-dangling", "e"},
	"hooks of the user's": {`printf '#!/bin/sh\necho ran >>hooklog\n' >.git/hooks/pre-commit; printf '#!/bin/sh\necho out >>%s/outlog\n' "$PWD" >.git/hooks/reference-transaction; chmod +x .git/hooks/*; rm -f outlog; printf 'hooklog\noutlog\n' >>.git/info/exclude`, []turn{
		{"agent", "echo x >x; git add x; git commit -qm x; cat hooklog; grep -c . outlog >steps/count", "ran"},
	}, "cat hooklog; [ $(grep -c . outlog) = $(cat steps/count) ] && echo once", "ran\nonce"},
	"husky": {`mkdir .husky; printf '#!/bin/sh\necho ran >>hooklog\n' >.husky/pre-commit; chmod +x .husky/pre-commit; echo hooklog >>.git/info/exclude; git config core.hooksPath .husky; git add .; git commit -qm h; rm hooklog`, []turn{
		{"agent", "echo x >x; git add x; git commit -qm x", ""},
	}, "cat hooklog; git log -1 --format=%s", "ran\nx"},
	"a worktree, merged and removed": {"", []turn{
		{"agent", "git worktree add -q steps/w -b wb; cd steps/w; echo w >w; git add w; git commit -qm w; cd ../..; git merge -q wb; git worktree remove steps/w; git branch -q -d wb", ""},
	}, "git log -1 --format=%s; git branch --format='%(refname:short)'; git worktree list | wc -l", "w\nmain\n1"},
	"a sparse checkout": {"mkdir d e; echo d >d/d; echo e >e/e; git add .; git commit -qm de; git sparse-checkout set d", []turn{
		{"agent", "[ ! -e e/e ]; echo x >d/d; git commit -qam x", ""},
	}, "git log -1 --format=%s; git status --porcelain; [ -e e/e ] || echo sparse", "x\nsparse"},
	"a remote: fetch, pull, push": {"git init -q -b main --bare r.git; echo r.git >>.git/info/exclude; git remote add origin $PWD/r.git; git push -q -u origin main; git clone -q r.git ../other; cd ../other; echo o >o; git add o; git commit -qm other; git push -q", []turn{
		{"agent", "git pull -q --ff-only; echo p >p; git add p; git commit -qm p; git push -q; git push -q origin HEAD:topic", ""},
	}, "git log -2 --format=%s origin/topic; git status -sb | head -1", "p\nother\n## main...origin/main"},
	"a submodule, checked out anew": {"git init -q ../lib; git -C ../lib commit -qm l --allow-empty; git -c protocol.file.allow=always submodule -q add ../lib sm; git commit -qm sm", []turn{
		{"user", "git submodule -q deinit -f sm; git submodule -q update --init 2>/dev/null; git -C sm log -1 --format=%s", "l"},
	}, "git -C sm log -1 --format=%s; git status --porcelain", "l"},
	"a submodule that was not checked out": {"git init -q ../lib; cd ../lib; echo x >.envrc; git add .envrc; git commit -qm l; cd -; git -c protocol.file.allow=always submodule -q add $PWD/../lib sm; git commit -qm sm; git submodule -q deinit -f sm; rm -rf .git/modules", []turn{
		{"user", "git -c protocol.file.allow=always submodule -q update --init; cat sm/.envrc", "x"},
		{"agent", "ls -A sm", ""},
	}, "git -C sm log -1 --format=%s; git status --porcelain", "l"},
	"a program that watches for the user's git": {`printf '#!/bin/sh\nprintf "tok\\0/\\0"\n' >../watch; chmod +x ../watch; git config core.fsmonitor "$PWD/../watch"; git status --porcelain`, []turn{
		{"agent", "echo x >x; git add x 2>&1; git status --porcelain 2>&1", "A  x"},
	}, "git status --porcelain; git config core.fsmonitor | grep -c watch", "A  x\n1"},
	"parts are staged in turns, over an amended and a rebased commit": {"seq 12 >f; seq 12 >g; git add .; git commit -qm fg; git commit -qm two --allow-empty; git commit -qm three --allow-empty", []turn{
		{"user", `sed -i "1s/.*/top/; 12s/.*/end/" f; printf 'y\nn\n' | git add -p f >/dev/null`, ""},
		{"agent", `sed -i "1s/.*/top/; 12s/.*/end/" g; printf 'n\ny\n' | git add -p g >/dev/null; git commit -qm g g; git commit -q --amend --only -m g2; git diff --cached --stat | tail -1`, "1 file changed, 1 insertion(+), 1 deletion(-)"},
		{"user", "git diff --cached | grep '^[+]'; git restore --staged f; git stash -q", "+++ b/f\n+top"},
		{"agent", `GIT_SEQUENCE_EDITOR="sed -i 2s/pick/fixup/" git rebase -q -i HEAD~3; git stash pop -q; git add f`, ""},
	}, "git log -3 --format=%s; git status --porcelain; git show :f | sed -n '1p;12p'; git stash list", "g2\ntwo\nfg\nM  f\ntop\nend"},
	"a commit in a submodule, amended by each": {"git init -q ../lib; git -C ../lib commit -qm l --allow-empty; git -c protocol.file.allow=always submodule -q add ../lib sm; git commit -qm sm; git -C sm switch -qc work", []turn{
		{"agent", "cd sm; echo y >y; git add y; git commit -qm one; cd ..; git add sm; git commit -qm bump", ""},
		{"user", "until [ $(git -C sm log -1 --format=%s) = one ]; do sleep 0.1; done; git submodule status | cut -c1; git -C sm commit -q --amend -m two; git add sm; git commit -q --amend -m bump2", ""},
		{"agent", "until [ $(git -C sm log -1 --format=%s) = two ]; do sleep 0.1; done; git submodule status | cut -c1; git -C sm commit -q --amend -m three; git add sm; git commit -q --amend -m bump3", ""},
	}, "git log -2 --format=%s; git -C sm log -2 --format=%s work; git submodule status | cut -c1; git status --porcelain", "bump3\nsm\nthree\nl"},
	"a partial clone": {"git rm -q README.md; for i in 1 2 3; do echo $i >f$i; done; git add .; git commit -qm two; git rm -q f3; git commit -qm three; git clone -q --bare . ../all.git; mv ../all.git r.git; git -C r.git config uploadpack.allowFilter true; rm -rf .git; git clone -q --no-checkout --filter=blob:none file://$PWD/r.git c; mv c/.git .; rmdir c; printf 'steps/\nr.git\n' >>.git/info/exclude; git reset -q --hard", []turn{
		{"agent", "echo x >x; git add x; git commit -qm x; git switch -q -c old HEAD~2; cat f3; echo y >f2; git commit -qam y", "3"},
		{"user", "git log -1 --format=%s; git switch -q main; echo u >f1; git commit -qam u; git gc -q", "y"},
		{"agent", "git switch -q old; cat f2; git merge -q --no-edit main; git push -q origin old", "y"},
	}, "git log -1 --format=%s; git status --porcelain; git rev-list --count HEAD; git fsck --no-dangling 2>&1", "Merge branch 'main' into old\n7"},
	"a split index": {"git config core.splitIndex true; git update-index --split-index", []turn{
		{"agent", "echo x >x; git add x; git commit -qm x; echo y >y; git add y", ""},
		{"user", "echo u >u; git add u; git status --porcelain", "A  u\nA  y"},
		{"agent", "git commit -qm both; git status --porcelain", ""},
	}, "git log -1 --format=%s; git status --porcelain; ls .git/sharedindex.* | wc -l | tr 1-9 +", "both\n+"},
	"a shallow clone, made whole inside": {"git commit -qm two --allow-empty; git clone -q --bare . ../all.git; mv ../all.git r.git; rm -rf .git; git clone -q --depth 1 --no-checkout file://$PWD/r.git c; mv c/.git .; rmdir c; printf 'steps/\nr.git\n' >>.git/info/exclude; git reset -q", []turn{
		{"agent", "echo x >x; git add x; git commit -qm x; git fetch -q --unshallow; git rev-list --count HEAD", "3"},
		{"agent", "echo y >x; git commit -qam y; git push -q", ""},
	}, "git log --format=%s -1; git status --porcelain; git rev-list --count HEAD", "y\n3"},
}

// Each is done in a session that runs, the user's side by plain git.
func TestTheFlowOfADayWithGit(t *testing.T) {
	for name, f := range trial.Some(3, flows) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity)
			w.plain(t, "echo steps/ >>.git/info/exclude; mkdir steps; "+f.before)
			session := beside(t, w.session(`export GIT_EDITOR=true; for n in $(seq 1000); do until [ -e steps/$n ]; do sleep 0.02; done
				[ -s steps/$n ] || break; s=0; bash -ec "$(cat steps/$n)" >steps/out 2>&1 || s=$?; echo "$s" >>steps/out; mv steps/out steps/$n.out; done`))
			calls := 0
			inside := func(script string) (string, bool) {
				calls++
				name := fmt.Sprintf("project/steps/%d", calls)
				w.write(t, name+".new", script)
				must.Do(t, os.Rename(w.path(name+".new"), w.path(name)))
				if script == "" {
					return "", true
				}
				must.Appear(t, w.path(name+".out"))
				said, well := strings.CutSuffix(w.read(t, name+".out"), "0\n")
				return strings.TrimSpace(said), well
			}
			agent := func(script string) string {
				said, well := inside(script)
				if !well {
					t.Errorf("the agent: %s: %s", script, said)
				}
				return said
			}
			const look = `git symbolic-ref -q HEAD || git rev-parse HEAD; git for-each-ref --format='%(objectname) %(refname)' | grep -v -e /stash$ -e remotes/ || :
				git ls-files -s; git stash list --format=%H; git status --porcelain`
			// A look may fall between two steps of a hand-over: a git that lists what is just removed fails.
			same := func() {
				for end := time.Now().Add(patience); ; {
					theirs, well := inside(look)
					ours, fault := w.tryPlain(look)
					if well && fault == nil && theirs == ours {
						return
					}
					if time.Now().After(end) {
						t.Fatalf("inside:\n%s\noutside:\n%s\n%v", theirs, ours, fault)
					}
				}
			}
			for _, turn := range f.turns {
				who, how, _ := strings.Cut(turn.who, " ")
				do := agent
				if who == "user" {
					do = func(script string) string { return w.plain(t, script) }
				}
				if how == "" {
					same()
				}
				if got := do(turn.do); got != turn.want {
					t.Errorf("%s: %s: got\n%s\nwant\n%s", who, turn.do, got, turn.want)
				}
				if how != "apart" {
					same()
				}
			}
			agent("")
			got := <-session
			if has := w.plain(t, f.then); has != f.want || got.status != 0 || strings.Contains(got.stderr, "replaced outside") ||
				strings.Contains(got.stderr, "what your own tools run was changed") && strings.Contains(name, "submodule") {
				t.Errorf("the user has\n%s\nwant\n%s\n%v", has, f.want, got)
			}
		})
	}
}
