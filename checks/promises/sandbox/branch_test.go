//go:build lab

package sandbox_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// onBranch is a project of a user who has work of every kind under way.
func onBranch(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	w.plain(t, `printf 'node_modules/\n.env\n*.log\nbuild/\n' >.gitignore; mkdir -p src; echo one >src/a; echo one >mod; git add .; git commit -qm one; git branch other
echo mine >>mod; echo new >untracked; echo staged >staged; git add staged; echo TOKEN=1 >.env; echo log >x.log; git stash list`)
	return w
}

// users prints all that is the user's, byte for byte; the branches of sessions are not.
const users = `git rev-parse HEAD; cat .git/HEAD; sha256sum .git/index; git status --porcelain --ignored; git stash list; git tag
find . -path ./.git -prune -o -printf '%p %y %m %s %T@ %l\n' | sort; git for-each-ref refs/heads/main refs/heads/other; cat .git/config; ls .git .git/worktrees 2>/dev/null || :`

// branchOf is a session on a branch.
func (w *world) branchOf(t *testing.T, name, script string, flags ...string) outcome {
	t.Helper()
	words := slices.Concat([]string{"shell", "--yes", "--branch", name}, flags, []string{"--", "bash", "-euc", script})
	got := run(t, w.claudebox(words...))
	if got.status != 0 {
		t.Fatalf("%s: status %d\n%s%s", script, got.status, got.stdout, got.stderr)
	}
	return got
}

// What the agent commits is on the branch at once, what it has not committed at the end. The user's folder, HEAD,
// index and status stay byte for byte.
func TestASessionOnABranchLeavesTheUsersFolderAsItIs(t *testing.T) {
	w := onBranch(t)
	before := w.plain(t, users)
	got := w.branchOf(t, "feat", `test ! -e untracked; test ! -e staged; grep -qx one mod; test -z "$(git status --porcelain)"
printf '#!/bin/sh\ntouch hook-ran\nexit 1\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo two >src/a; git commit -qnam two
rm mod; mkdir deep; echo y >"deep/a name"; git init -q sub; echo q >sub/q; head -c 2000000 /dev/zero >big; echo l >y.log; echo "$CLAUDEBOX_STATUS"; pwd`)
	if want := "claudebox default · inet · feat\n" + w.project + "\n"; got.stdout != want {
		t.Errorf("it printed %q, want %q", got.stdout, want)
	}
	expect.Contains(t, got.stderr, "sub", "big", "last commit")
	wantEqual(t, w.plain(t, users), before)
	wantEqual(t, w.plain(t, `git log --format='%s %an/%cn' main..feat; git ls-tree -r --name-only feat; git show feat:src/a; git fsck --strict --no-dangling`),
		"what the agent left uncommitted agent/claudebox\ntwo Ada/Ada\n.gitignore\nREADME.md\ndeep/a name\nsrc/a\ntwo")
	// The same name goes on, with what was left in the checkout.
	got = w.branchOf(t, "feat", `git status --porcelain; cat y.log sub/q; echo three >src/a`)
	if !strings.Contains(got.stdout, "?? big\n") || !strings.HasSuffix(got.stdout, "l\nq\n") {
		t.Errorf("the second session has %q", got.stdout)
	}
	wantEqual(t, w.plain(t, "git show feat:src/a"), "three")
	wantEqual(t, w.plain(t, users), before)
}

func TestASessionOnABranchIsRefused(t *testing.T) {
	w := onBranch(t)
	w.plain(t, `git worktree add -q ../side -b side; git branch deep/er; git tag v1; git commit -qm two`)
	for name, tc := range map[string]struct {
		flags []string
		want  string
	}{
		"the branch of the user's": {[]string{"--branch", "main"}, "it is checked out in"},
		"one of a worktree":        {[]string{"--branch", "side"}, "it is checked out in"},
		"no name":                  {[]string{"--branch", "a b"}, "does not cross"},
		"an option":                {[]string{"--branch=-d"}, "does not cross"},
		"HEAD":                     {[]string{"--branch", "HEAD"}, "does not cross"},
		"a path out of refs":       {[]string{"--branch", "../../config"}, "does not cross"},
		"signs of a shell":         {[]string{"--branch", "a$(id)"}, "does not cross"},
		"claudebox's own":          {[]string{"--branch", "claudebox/x"}, "does not cross"},
		"no commit":                {[]string{"--branch", "x", "--from", "nowhere"}, "knows no commit"},
		"an option for a commit":   {[]string{"--branch", "x", "--from=--all"}, "knows no commit"},
		"--from of one that is":    {[]string{"--branch", "other", "--from", "main"}, "it is there"},
		"--from alone":             {[]string{"--from", "main"}, "--branch"},
		"a mount of the project":   {[]string{"--branch", "x", "--mount-rw", "src"}, "changes nothing"},
		"a name of git's":          {[]string{"--branch", "refs/heads/x"}, "does not cross"},
		"a part too long":          {[]string{"--branch", strings.Repeat("x", 241)}, "does not cross"},
		"one below a branch":       {[]string{"--branch", "other/x"}, "beside your branch \"other\""},
		"one above a branch":       {[]string{"--branch", "deep"}, "beside your branch \"deep/er\""},
		"the name of a tag":        {[]string{"--branch", "v1"}, "a tag, or a branch of a remote"},
		"a mount around":           {[]string{"--branch", "x", "--mount-rw", w.path("project")}, "changes nothing"},
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, run(t, w.session("true", tc.flags...)), tc.want) })
	}
	t.Run("a project without git", func(t *testing.T) {
		w := newWorldHere(t)
		wantRefused(t, run(t, w.session("true", "--branch", "x")), "git init")
		w.plain(t, "git init -q -b main")
		wantRefused(t, run(t, w.session("true", "--branch", "x")), "no commit")
		w.plain(t, "rm -rf .git; git init -q --bare .bare; echo 'gitdir: .bare' >.git")
		wantRefused(t, run(t, w.session("true", "--branch", "x")), "lies among its files")
	})
	if got := w.plain(t, "git for-each-ref refs/heads; ls ~/.claudebox/branches/*/ 2>/dev/null || :"); strings.Count(got, "\n") != 3 {
		t.Errorf("there are branches\n%s", got)
	}
}

// A branch has one session at a time; branches have any number.
func TestTwoSessionsOnOneBranch(t *testing.T) {
	w := onBranch(t)
	first := w.session(`for i in $(seq 600); do git rev-parse -q --verify end >/dev/null && break; sleep 0.05; done; git commit -qm first --allow-empty`, "--branch", "feat")
	must.Do(t, first.Start())
	defer func() { _ = first.Process.Kill() }()
	w.awaitBranch(t, "feat")
	wantRefused(t, run(t, w.session("true", "--branch", "feat")), "a session works on it")
	w.branchOf(t, "beside", `git commit -qm beside --allow-empty`)
	w.plain(t, "git branch end")
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
	wantEqual(t, w.plain(t, "git log -1 --format=%s feat; git log -1 --format=%s beside"), "first\nbeside")
}

// awaitBranch waits until a branch is there.
func (w *world) awaitBranch(t *testing.T, name string) {
	t.Helper()
	must.Await(t, "branch "+name+" is there", func() bool {
		cmd := exec.Command("git", "rev-parse", "-q", "--verify", "refs/heads/"+name)
		cmd.Dir = w.project
		return cmd.Run() == nil
	})
}

// awaitIdle waits until no session works on a branch: a program that a killed one has just begun may hold the lock for a
// moment more.
func (w *world) awaitIdle(t *testing.T) {
	t.Helper()
	must.Await(t, "it runs no more", func() bool { return !strings.Contains(succeed(t, w.claudebox("branch", "list")), "running") })
}

// What a prompt, an editor or an indexer could step into by itself is closed, while the session runs and afterwards.
func TestThePlantedRepositoryOfABranchCannotBeReached(t *testing.T) {
	w := onBranch(t)
	plant := `git init -q src/evil; git -C src/evil config core.fsmonitor "touch $HOME/TAKEN; false"; cp -r src/evil/.git /x 2>/dev/null || :; cp -r src/evil/.git src/.git; git -C src status >/dev/null || :`
	look := `test -n "$(find ~/.claudebox/branches -name closed -perm 0 2>/dev/null)"; for d in $(find ~/.claudebox/branches -type d 2>/dev/null); do (cd $d 2>/dev/null && git status >/dev/null 2>&1) || :; done
find ~ -name evil 2>/dev/null | wc -l; ls ~/TAKEN src/evil src/.git 2>/dev/null | wc -l`
	session := w.session(plant+`; git commit -qm planted --allow-empty; sleep 600`, "--branch", "feat")
	must.Do(t, session.Start())
	w.awaitBranch(t, "feat")
	must.Await(t, "it is committed", func() bool { return w.plain(t, "git log -1 --format=%s feat") == "planted" })
	wantEqual(t, w.plain(t, look), "0\n0")
	_ = session.Process.Signal(os.Kill)
	_ = session.Wait()
	wantEqual(t, w.plain(t, look), "0\n0")
	// After the kill, what is committed is there; what is not stays in the checkout.
	got := w.branchOf(t, "feat", `test -d src/evil; git log -1 --format=%s`)
	wantEqual(t, got.stdout, "planted\n")
	wantEqual(t, w.plain(t, look), "0\n0")
}

// What is kept can be listed, read and removed; what has not crossed is not removed. A session that was killed hands
// over when somebody looks.
func TestBranchesAreListedReadAndRemoved(t *testing.T) {
	w := onBranch(t)
	w.branchOf(t, "feat", `echo two >src/a; git commit -qam two; printf 'half \033[31m' >half`)
	dead := w.session(`echo k >k; git add k; git commit -qm k; echo left >left; git branch ready; sleep 600`, "--branch", "killed")
	must.Do(t, dead.Start())
	w.awaitBranch(t, "ready")
	expect.Contains(t, succeed(t, w.claudebox("git")), "no session has worked here; there were some on branches: `claudebox branch list`")
	if got := succeed(t, w.claudebox("branch", "list")); !regexp.MustCompile(`(?s)killed +running +1 +0.*feat +kept +2 +0|feat +kept +2 +0.*killed +running +1 +0`).MatchString(got) {
		t.Errorf("the list is\n%s", got)
	}
	if got := succeed(t, w.claudebox("branch", "diff", "killed")); !strings.Contains(got, "+k\n") || !strings.Contains(got, "new, not added: left\n") || strings.Count(got, "+++ ") != 1 {
		t.Errorf("the difference is\n%s", got)
	}
	wantEqual(t, succeed(t, w.claudebox("branch", "show", "killed", "left")), "left\n")
	wantRefused(t, run(t, w.claudebox("branch", "remove", "killed")), "a session works on it")
	_ = dead.Process.Kill()
	_ = dead.Wait()
	got := run(t, w.claudebox("branch", "list"))
	if got.status != 0 || !strings.Contains(got.stderr, "killed: what the agent left uncommitted") {
		t.Errorf("status %d, %s", got.status, got.stderr)
	}
	wantEqual(t, w.plain(t, "git show killed:left; git show feat:half | od -c | head -1"), "left\n0000000   h   a   l   f     033   [   3   1   m")
	// A file that is too large does not cross, folders that the agent has closed are removed all the same, and no link
	// is followed.
	w.branchOf(t, "feat", `head -c 2000000 /dev/zero >big; mkdir -p shut/in; touch shut/in/x; chmod 0 shut/in shut; ln -s "$HOME/../../etc" out; ln -s ../../../../../../project/src up`)
	wantRefused(t, run(t, w.claudebox("branch", "remove", "feat")), "big")
	wantEqual(t, succeed(t, w.claudebox("branch", "remove", "feat", "--force")), "removed the checkout of feat; your branches stay\n")
	wantRefused(t, run(t, w.claudebox("branch", "remove", "feat")), "no session worked on it")
	wantRefused(t, run(t, w.claudebox("branch", "show", "other", "src/a")), "no session worked on it")
	wantEqual(t, w.plain(t, "git log --format=%s -2 feat | tail -1; cat src/a; ls ~/.claudebox/branches/*/ | wc -l"), "what the agent left uncommitted\none\n1")
	for _, word := range []string{"remove", "--branch"} {
		words := []string{"__complete", "branch", word, ""}
		if word == "--branch" {
			words = []string{"__complete", word, ""}
		}
		if got := run(t, w.claudebox(words...)); !strings.HasPrefix(got.stdout, "killed\n") {
			t.Errorf("%s completes to %q", word, got.stdout)
		}
	}
}

// fill makes ignored folders of each kind: two large ones, of which one is deep in the project, and small things. What
// makes them large takes little of the disk: most of the files are one by other names, the large one is a hole.
const fill = `mkdir -p node_modules/.bin packages/app/node_modules small/in data/.aws
for i in $(seq 9); do echo $i >node_modules/m$i; echo $i >data/m$i; done
python3 -c 'import os; [os.link(d + "/m9", f"{d}/m{i}") for d in ("node_modules", "data") for i in range(10, 2101)]'
echo lock >node_modules/.package-lock.json; ln -s ../m1 node_modules/.bin/m1
echo TOKEN=x >data/.env; printf '[default]\naws_secret_access_key = SECRET\n' >data/.aws/credentials
truncate -s 21000000 packages/app/node_modules/large; echo small >small/in/s; echo KEY=1 >small/.env; ln -s small link
git init -q own; echo l >l.log; printf 'node_modules/\n.env\n*.log\nsmall/\ndata/\nlink\nown/\n' >.gitignore
mkdir -p packages/app; echo app >packages/app/index; git add .gitignore packages/app/index; git commit -qm ignored`

// A git of the user's that switches branches takes .gitignore away for a moment: a session that starts then waits for
// it, as else nothing were ignored.
func TestASessionOnABranchStartsWhileTheUserSwitches(t *testing.T) {
	w := onBranch(t)
	w.plain(t, fill+`; touch .git/index.lock; mv .gitignore taken`)
	var switched sync.WaitGroup
	switched.Go(func() {
		time.Sleep(time.Second)
		w.plain(t, "mv taken .gitignore; rm .git/index.lock")
	})
	defer switched.Wait()
	if got := w.branchOf(t, "feat", "cat node_modules/m7"); got.stdout != "7\n" {
		t.Error(got.stdout, got.stderr)
	}
}

// Big ignored folders are seen below a layer of the branch's own, small ones are copied, secrets are empty. Nothing of
// the user's changes.
func TestIgnoredFoldersOfABranch(t *testing.T) {
	w := onBranch(t)
	w.plain(t, fill)
	before := w.plain(t, users)
	got := w.branchOf(t, "feat", `grep -c "overlay $PWD" /proc/mounts; ls node_modules | wc -l; cat node_modules/.bin/m1 small/in/s link/in/s l.log
wc -c <packages/app/node_modules/large; cat .env small/.env data/.env data/.aws/*; ls own 2>&1 | tail -1; git status --porcelain
echo mine >node_modules/m1; rm node_modules/m2; echo new >node_modules/new; echo mine >small/in/s; echo 1 >.env; mv packages p2; git add -A; git commit -qm moved; git mv p2 packages; git commit -qm back; ls packages/app/node_modules`)
	want := "3\n2100\n1\nsmall\nsmall\nl\n21000000\nls: cannot access 'own': No such file or directory\nlarge\n"
	if got.stdout != want {
		t.Errorf("it has\n%s\nwant\n%s", got.stdout, want)
	}
	wantEqual(t, w.plain(t, users), before)
	got = w.branchOf(t, "feat", `cat node_modules/m1 node_modules/new small/in/s .env; ls node_modules/m2 2>&1 || :; find node_modules -delete 2>/dev/null || :; ls -A node_modules | wc -l; echo again >node_modules/again`)
	if want := "mine\nnew\nmine\n1\nls: cannot access 'node_modules/m2': No such file or directory\n0\n"; got.stdout != want {
		t.Errorf("the second session has\n%s\nwant\n%s", got.stdout, want)
	}
	w.branchOf(t, "other2", `[ "$(cat node_modules/m1)" = 1 ]; [ "$(ls node_modules | wc -l)" = 2100 ]`)
	wantEqual(t, w.plain(t, users), before)
	// Made again outside: the layer would lie over another world.
	w.plain(t, "rm -rf node_modules; mkdir node_modules; echo n2 >node_modules/m2; truncate -s 21000000 node_modules/large")
	got = w.branchOf(t, "feat", `cat node_modules/m2; ls node_modules | wc -l`)
	if got.stdout != "n2\n2\n" || !strings.Contains(got.stderr, "node_modules was made again outside") {
		t.Errorf("it has\n%s\n%s", got.stdout, got.stderr)
	}
	// What HEAD's rules do not ignore would be committed.
	w.plain(t, `echo extra >>.gitignore; mkdir extra; echo x >extra/x`)
	got = w.branchOf(t, "feat", `ls extra 2>&1 | tail -1`)
	if !strings.Contains(got.stderr, "not ignored there, and left out: extra") || !strings.Contains(got.stdout, "No such file") {
		t.Errorf("it has\n%s\n%s", got.stdout, got.stderr)
	}
	w.plain(t, "git worktree list | wc -l")
}

// An agent puts a link, or something else, in the way of a mount point or copy; the next session makes nothing where it
// leads.
func TestALinkInTheWayOfAMountPointOfABranch(t *testing.T) {
	for name, plant := range trial.Some(2, map[string]string{
		"to a folder of the host":   `ln -s "$HOME/victim" packages/app`,
		"to a folder of the system": `ln -s /etc packages/app`,
		"to the git folder":         `ln -s ../.git packages/app`,
		"a file":                    `echo x >packages/app`,
		"a link for the parent":     `mv packages pk; ln -s "$HOME/victim" packages`,
		"the folder itself":         `mkdir packages/app; ln -s "$HOME/victim" packages/app/node_modules; ln -s "$HOME/victim" small2`,
		"a repository":              `mkdir packages/app; git init -q packages/app/node_modules`,
	}) {
		t.Run(name, func(t *testing.T) {
			w := onBranch(t)
			w.plain(t, fill+"; mkdir ~/victim; echo v >~/victim/v")
			w.branchOf(t, "feat", `mv packages/app away; `+plant)
			w.plain(t, `echo 'small2/' >>.git/info/exclude; mkdir small2; echo s >small2/s`)
			before := w.plain(t, users)
			got := w.branchOf(t, "feat", `ls -ld packages/app || :; ls node_modules | wc -l; grep -c "overlay $PWD" /proc/mounts`)
			if !strings.HasSuffix(got.stdout, "2100\n2\n") {
				t.Errorf("it has\n%s\n%s", got.stdout, got.stderr)
			}
			wantEqual(t, w.plain(t, "find ~/victim | sort; cat ~/victim/v"), w.home+"/victim\n"+w.home+"/victim/v\nv")
			wantEqual(t, w.plain(t, users), before)
		})
	}
}

// What a hostile agent leaves in a layer opens nothing of the host at the next start, and the secrets in the folder below
// stay hidden, whatever it does to what hides them.
func TestAHostileLayerOfABranch(t *testing.T) {
	w := onBranch(t)
	w.plain(t, fill)
	before := w.plain(t, users)
	const look = `cat data/.env data/x/.env data/.aws/credentials data/y/credentials 2>/dev/null || :`
	got := w.branchOf(t, "feat", look+`
cd data; rm -f .env; mv .aws y || :; mkdir x; mv .env x/ 2>/dev/null || :; for n in opaque whiteout redirect metacopy origin; do
python3 -c 'import os,sys; os.setxattr(".", "user.overlay."+sys.argv[1], b"y")' $n || :; done
mkdir -p r; python3 -c 'import os; os.setxattr("r", "user.overlay.redirect", b"/../../../../project")' || :
mkfifo f; cp /bin/sh su 2>/dev/null || cp "$(command -v true)" su; chmod 6755 su || :; ln m5 hard || :; ln -s /etc/shadow s`)
	if strings.Contains(got.stdout, "SECRET") || strings.Contains(got.stdout, "TOKEN") {
		t.Errorf("it read %q", got.stdout)
	}
	got = w.branchOf(t, "feat", look+`; rm -rf data/.aws data/.env; ls data/r | wc -l; `+look)
	if got.stdout != "0\n" {
		t.Errorf("it read %q, %s", got.stdout, got.stderr)
	}
	got = w.branchOf(t, "feat", look)
	wantEqual(t, got.stdout, "")
	wantEqual(t, w.plain(t, users), before)
}

// A session beside exchanges an ignored folder for a link to the user's secrets, again and again, while sessions on a
// branch start.
func TestAnIgnoredFolderIsExchangedForALinkWhileABranchStarts(t *testing.T) {
	w := onBranch(t)
	w.plain(t, fill+`; mkdir -p ~/.aws; cd ~/.aws; echo SECRET >m1; python3 -c 'import os; [os.link("m1", f"m{i}") for i in range(2, 2101)]'`)
	beside := w.session(`ln -s "$HOME/.aws" lk; touch begun; python3 -c 'import ctypes, os, time
call, began = ctypes.CDLL(None).renameat2, time.time()
while not os.path.exists("end") and time.time() < began + 60:
    call(-100, b"node_modules", -100, b"lk", 2)
    time.sleep(0.001)'`)
	must.Do(t, beside.Start())
	must.Appear(t, w.path("project/begun"))
	started := 0
	for range trial.Count(8, 15) {
		got := run(t, w.session(`cat node_modules/m1 2>/dev/null || :`, "--branch", "feat"))
		if strings.Contains(got.stdout, "SECRET") {
			t.Fatalf("it read %q", got.stdout)
		}
		if got.status == 0 {
			started++
		}
	}
	w.write(t, "project/end", "")
	_ = beside.Wait()
	if started == 0 {
		t.Error("no session started")
	}
}

// While a session runs the user's git does not switch to its branch or remove it; plain sessions work beside it.
// Afterwards, and after a kill, nothing is left of that.
func TestTheUsersGitKeepsOffABranch(t *testing.T) {
	w := onBranch(t)
	session := w.session(`git commit -qm one --allow-empty; for i in $(seq 1200); do git rev-parse -q --verify end >/dev/null && break; sleep 0.05; done; git commit -qm two --allow-empty`, "--branch", "feat")
	must.Do(t, session.Start())
	w.awaitBranch(t, "feat")
	for _, words := range []string{"switch feat", "checkout feat", "branch -d feat", "branch -D feat", "worktree add ../x feat"} {
		if got := w.plain(t, "git "+words+" 2>&1 || echo refused"); !strings.Contains(got, "refused") {
			t.Errorf("git %s: %s", words, got)
		}
	}
	w.plain(t, "git worktree prune; git gc -q; git fsck --strict --no-dangling; git status >/dev/null")
	if got := run(t, w.claudebox("shell", "--yes", "--", "bash", "-euc", `git log --format=%s -1 feat; git status >/dev/null`)); got.status != 0 || got.stderr != "" {
		t.Errorf("a plain session beside: status %d, %s", got.status, got.stderr)
	}
	w.plain(t, "git branch end")
	if err := session.Wait(); err != nil {
		t.Error(err)
	}
	w.plain(t, "git branch -q -D end; git pack-refs --all")
	if got := w.plain(t, "git worktree list | wc -l; git switch -q feat; git log -1 --format=%s; git switch -q main"); got != "1\ntwo" {
		t.Errorf("afterwards: %s", got)
	}
	killed := w.session(`git commit -qm three --allow-empty; git branch ready; sleep 600`, "--branch", "feat")
	must.Do(t, killed.Start())
	w.awaitBranch(t, "ready")
	_ = killed.Process.Kill()
	_ = killed.Wait()
	w.awaitIdle(t)
	wantEqual(t, w.plain(t, "git worktree list | wc -l; git switch -q feat; git log -1 --format=%s; git switch -q main; git branch -qD feat ready"), "1\nthree")
}

// With a rebase or a merge under way at the end, what is not committed stands beside, and the next session goes on.
func TestARebaseIsUnderWayWhenASessionOnABranchEnds(t *testing.T) {
	w := onBranch(t)
	const conflict = `git switch -qc t; echo t >mod; git commit -qam t; git switch -q feat; echo f >mod; git commit -qam f; `
	got := w.branchOf(t, "feat", conflict+`git rebase t >/dev/null 2>&1 || :; echo half >mod`)
	if !strings.Contains(got.stderr, "claudebox/feat/uncommitted") || !strings.Contains(got.stderr, "a rebase is under way inside") {
		t.Errorf("told %s", got.stderr)
	}
	wantEqual(t, w.plain(t, "git log -1 --format=%s feat; git show claudebox/feat/uncommitted:mod"), "f\nhalf")
	w.branchOf(t, "feat", `git status | grep -q rebas; echo done >mod; git add mod; GIT_EDITOR=true git rebase --continue >/dev/null 2>&1`)
	wantEqual(t, w.plain(t, "git log --format=%s main..feat; git show feat:mod; git branch --list 'claudebox/*'"), "f\nt\ndone")
	// What the user adds to the branch between two sessions is there at the next start.
	w.plain(t, "git update-ref refs/heads/feat $(git commit-tree -p feat -m theirs main^{tree})")
	got = w.branchOf(t, "feat", `git log -1 --format=%s; cat mod; git commit -qm next --allow-empty`)
	wantEqual(t, got.stdout, "theirs\none\n")
	wantEqual(t, w.plain(t, "git log -2 --format=%s feat; git branch --list 'claudebox/*'"), "next\ntheirs")
}

// Between two sessions the user amends the branch's commit in another worktree, and the agent takes that over; it rebases
// and amends its own commits, in as many steps as it likes. Nothing stands beside then, and its stash is there in the next
// session, also in one that is started elsewhere, and after a kill.
func TestTheUserAndTheAgentRewriteABranch(t *testing.T) {
	w := onBranch(t)
	amend := `git worktree add -q ../wt feat; git -C ../wt commit -q --amend -m %s; git -C ../wt switch -qc %[1]s`
	const heads = `git for-each-ref --format='%(refname:lstrip=2)=%(subject)' refs/heads | tr '\n' ' '`
	on := func(script, want string) {
		t.Helper()
		got := w.branchOf(t, "feat", script)
		if got.stdout != want || strings.Contains(got.stderr, "moved") {
			t.Errorf("%s: it prints %q, want %q; it says %s", script, got.stdout, want, got.stderr)
		}
	}
	on(`echo 1 >w1; git add w1; git commit -qm w1; echo stashed >mod; git stash -q`, "")
	w.plain(t, fmt.Sprintf(amend, "mine"))
	on(`git stash list | wc -l; git reset -q --hard user/feat; git commit -q --amend -m better; git log --format=%s main..`, "1\nbetter\n")
	wantEqual(t, w.plain(t, heads), "feat=better main=one mine=mine other=one")
	on(`for i in 2 3; do echo $i >w$i; git add w$i; git commit -qm w$i; done; export GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' GIT_EDITOR=true
git rebase -q -i main; for i in 1 2 3; do git commit -q --amend -m x$i; touch x; sleep 0.5; rm x; git rebase --continue 2>/dev/null; done; git log --format=%s main..`, "x3\nx2\nx1\n")
	wantEqual(t, w.plain(t, heads), "feat=x3 main=one mine=mine other=one")
	main := w.project
	w.project = w.path("wt")
	on(`git stash pop -q; cat mod; git stash -q`, "stashed\n")
	w.project = main
	killed := w.session(`git branch ready; sleep 600`, "--branch", "feat")
	must.Do(t, killed.Start())
	w.awaitBranch(t, "ready")
	_ = killed.Process.Kill()
	_ = killed.Wait()
	w.awaitIdle(t)
	on(`git stash pop -q; cat mod`, "stashed\n")
}

// Starts and ends at which nothing has changed ask git nothing. What changes after them is seen all the same: what the user
// does, and what the agent leaves.
func TestWhatChangesAfterIdleSessionsOfABranchIsSeen(t *testing.T) {
	w := onBranch(t)
	const answers = "~/.claudebox/branches/*/*/asked ~/.claudebox/branches/*/*/left"
	idle := func() { // git writes its index now and then, as it sees fit: an answer is kept of a session in which it does not
		t.Helper()
		w.plain(t, "rm -f "+answers)
		for try := 1; w.plain(t, "ls "+answers+" 2>/dev/null | wc -l") != "2"; try++ {
			time.Sleep(100 * time.Millisecond) // of what changed a moment ago no answer is kept
			if got := w.branchOf(t, "feat", `sleep 0.1; git status --porcelain`); got.stdout != "" || try == 30 {
				t.Fatalf("after session %d: %s", try, got.stdout)
			}
		}
		time.Sleep(100 * time.Millisecond)
		w.branchOf(t, "feat", "true") // git is asked nothing
	}
	idle()
	for _, step := range [][2]string{
		{"rm untracked; touch later", "not committed, and not there: mod, staged, later"},
		{"mkdir build; echo x >build/x", "copied: build, x.log"},
		{"rm -rf build; git stash -qu", "branch feat: goes on where it was"},
		{"git switch -q feat", "it is checked out in"},
		{"git switch -q main; git worktree add -q ../side feat", "it is checked out in"},
		{"git worktree remove ../side; echo >moved; git add moved; git commit -qm moved; git update-ref refs/heads/feat main; echo one >>src/a", "not committed, and not there: src/a"},
	} {
		w.plain(t, step[0])
		if got := run(t, w.claudebox("plan", "--branch", "feat")); !strings.Contains(oneLine(got.stdout+got.stderr), step[1]) {
			t.Errorf("%s: it says\n%s%s, want %s", step[0], got.stdout, got.stderr, step[1])
		}
	}
	wantEqual(t, w.branchOf(t, "feat", `git log -1 --format=%s; ls moved`).stdout, "moved\nmoved\n")
	for n, agent := range []string{
		`echo two >src/a`, `chmod +x src/a`, `rm mod`, `mkdir -p q; echo q >q/q`,
		`python3 -c 'import mmap; f=open("src/a","r+b"); m=mmap.mmap(f.fileno(),0); m[0]=65'`, `ln -s a src/l; echo m >>.git/info/exclude`,
	} {
		idle()
		w.branchOf(t, "feat", agent)
		if got := w.plain(t, "git rev-list --count main..feat"); got != fmt.Sprint(n+1) {
			t.Errorf("%s: %s commits are on the branch", agent, got)
		}
	}
	// Nor is what a session that was killed has left, nor what a hand has put into the closed folder.
	idle()
	dead := w.session(`echo killed >src/a; echo ready; sleep 600`, "--branch", "feat")
	said, err := dead.StdoutPipe()
	must.Do(t, err)
	must.Do(t, dead.Start())
	if text, err := bufio.NewReader(said).ReadString('\n'); text != "ready\n" {
		t.Fatalf("it said %q, %v", text, err)
	}
	_ = dead.Process.Kill()
	_ = dead.Wait()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // a program that it has just begun may hold the lock
		got := run(t, w.session("true", "--branch", "feat"))
		if got.status == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal(got.stderr)
		}
	}
	wantEqual(t, w.plain(t, "git show feat:src/a"), "killed")
	idle()
	w.plain(t, "cd ~/.claudebox/branches/*/*/; chmod 700 closed; echo hand >closed/tree/src/hand; chmod 0 closed")
	w.branchOf(t, "feat", "true")
	wantEqual(t, w.plain(t, "git show feat:src/hand"), "hand")
}

// In many files, too, what the agent writes crosses, and what the user writes is told: where a name comes, and where the
// content of a file changes. So it is after a session in which nothing happened.
func TestABranchOfManyFiles(t *testing.T) {
	w := onBranch(t)
	w.plain(t, `python3 - <<'.'
import os
for n in range(5000):
    if n % 50 == 0: os.makedirs(f"many/{n//250}/{n//50}")
    open(f"many/{n//250}/{n//50}/{n}.c", "w").write(f"{n}\n")
for n in range(2500):
    if n % 50 == 0: os.makedirs(f"node_modules/{n//50}")
    open(f"node_modules/{n//50}/{n}.js", "w").close()
.
git add .; git commit -qm many`)
	for range 2 { // git is not asked at the end of the second
		time.Sleep(100 * time.Millisecond)
		wantEqual(t, w.branchOf(t, "feat", `ls node_modules | wc -l; ls many/19/99 | wc -l`).stdout, "50\n50\n")
	}
	for n, agent := range []string{`echo x >>many/19/99/4999.c`, `rm many/0/0/0.c; echo y >many/0/0/0.d`} {
		w.branchOf(t, "feat", agent)
		wantEqual(t, w.plain(t, "git rev-list --count main..feat"), fmt.Sprint(n+1))
	}
	for _, user := range [][2]string{{"echo u >>many/7/35/1750.c", "many/7/35/1750.c"}, {"echo u >many/8/40/new", "many/7/35/1750.c, many/8/40/new"}} {
		w.plain(t, user[0])
		if got := run(t, w.claudebox("plan", "--branch", "feat")); !strings.Contains(oneLine(got.stdout+got.stderr), "not committed, and not there: "+user[1]) {
			t.Errorf("%s: it says\n%s%s", user[0], got.stdout, got.stderr)
		}
	}
}

// The agent breaks its git folder, and the user adds to the branch and amends it meanwhile: the new folder's index is what
// the checkout has of the user's, and nothing of theirs is taken back by what claudebox commits for the agent.
func TestABrokenGitFolderOfABranchTakesNothingBack(t *testing.T) {
	w := onBranch(t)
	w.branchOf(t, "feat", `echo 1 >w1; git add w1; git commit -qm w1; rm -rf .git/refs .git/HEAD .git/packed-refs; echo own >src/a; echo new >new`)
	w.plain(t, `git worktree add -q ../wt feat; cd ../wt; echo theirs >mod; echo z >z; git rm -q --cached README.md; git add mod z; git commit -q --amend -m mine; cd ../project; git worktree remove -f ../wt`)
	got := w.branchOf(t, "feat", `cat mod z; git status --porcelain; git log -1 --format=%s`)
	if want := "theirs\nz\n M src/a\n?? new\n"; !strings.HasPrefix(got.stdout, want) {
		t.Errorf("it has %q, want %q; it says %s", got.stdout, want, got.stderr)
	}
	wantEqual(t, w.plain(t, "git show feat:mod; git show feat:z; git ls-tree --name-only feat"), "theirs\nz\n.gitignore\nmod\nnew\nsrc\nw1\nz")
}

// Git waits at a pipe: each end and each start of the branch took a minute.
func TestAnAgentLeavesPipesWhereGitReads(t *testing.T) {
	w := onBranch(t)
	got := w.branchOf(t, "feat", `mkdir d; rm .gitignore; mkfifo .gitignore .gitattributes d/.gitignore; echo new >new`)
	expect.Contains(t, oneLine(got.stderr), "pipes of the agent's have names that end with .claudebox-aside now, as "+
		"whoever opens one waits: .gitattributes, .gitignore, d/.gitignore", "is the last commit of the branch")
	wantEqual(t, w.plain(t, "git show feat:new"), "new")
	if again := w.branchOf(t, "feat", "true"); strings.Contains(again.stderr, "pipe") {
		t.Errorf("again: %s", again.stderr)
	}
	got = w.branchOf(t, "feat", `echo last >last; rm .git/index; mkfifo .git/index`)
	if last := w.plain(t, "git show feat:last"); last != "last" {
		t.Errorf("got %q after %s", last, got.stderr)
	}
}

// While a session runs the user renames the branch, removes it, moves it, checks it out all the same, or makes another
// in its place. What the user has made of it stays, and the agent's commits are beside; then the checkout can go.
func TestTheUserTakesABranchFromItsSession(t *testing.T) {
	for name, tc := range trial.Some(2, map[string]struct{ user, want string }{
		"renamed":                  {"git branch -m feat mine", "claudebox/feat/feat=last main=one mine=first other=one"},
		"removed":                  {"git update-ref -d refs/heads/feat", "claudebox/feat/feat=last main=one other=one"},
		"moved":                    {"git update-ref refs/heads/feat main", "claudebox/feat/feat=last feat=one main=one other=one"},
		"checked out":              {"git stash -qu; git switch -q --ignore-other-worktrees feat", "claudebox/feat/feat=last feat=first main=one other=one"},
		"checked out elsewhere":    {"git worktree add -qf ../side feat", "claudebox/feat/feat=last feat=first main=one other=one"},
		"a branch below its name":  {"git branch -m feat mine; git branch feat/sub mine", "claudebox/feat/feat=last feat/sub=first main=one mine=first other=one"},
		"one below that of beside": {"git update-ref refs/heads/feat main; git branch claudebox/feat/feat/x", "claudebox-feat-feat=last claudebox/feat/feat/x=one feat=one main=one other=one"},
	}) {
		t.Run(name, func(t *testing.T) {
			w := onBranch(t)
			session := w.session(`git commit -qm first --allow-empty; for i in $(seq 1200); do [ -e end ] && break; sleep 0.05; git rev-parse -q --verify end >/dev/null && touch end; done; rm -f end; git commit -qm last --allow-empty`, "--branch", "feat")
			must.Do(t, session.Start())
			w.awaitBranch(t, "feat")
			must.Await(t, "it is committed", func() bool { return w.plain(t, "git log -1 --format=%s feat") == "first" })
			w.plain(t, tc.user)
			files, _, _ := strings.Cut(users, "; ls .git ") // which has the session's entry, too
			before := w.plain(t, files)
			w.plain(t, "git branch end main")
			if err := session.Wait(); err != nil {
				t.Error(err)
			}
			w.plain(t, "git branch -qD end")
			wantEqual(t, w.plain(t, files), before)
			const branches = `git for-each-ref --format='%(refname:lstrip=2)=%(subject)' refs/heads | tr '\n' ' '`
			wantEqual(t, w.plain(t, branches), tc.want)
			succeed(t, w.claudebox("branch", "remove", "feat"))
			wantEqual(t, w.plain(t, branches), tc.want)
		})
	}
}

// Between sessions the user removes the branch: the start says so, the agent goes on, nothing makes the branch again, and
// new commits are beside it. When the user has made it again from these, both are together.
func TestTheUserRemovesABranchBetweenItsSessions(t *testing.T) {
	w := onBranch(t)
	const branches = `git for-each-ref --format='%(refname:lstrip=2)=%(subject)' refs/heads | tr '\n' ' '`
	w.branchOf(t, "feat", `git commit -qm first --allow-empty`)
	w.plain(t, "git branch -qD feat")
	said := run(t, w.claudebox("plan", "--branch", "feat"))
	expect.Contains(t, oneLine(said.stdout+said.stderr), "branch feat: goes on where it was", "your branch feat is not there any more, and is not made again: what the agent commits is on claudebox/feat/feat")
	wantEqual(t, w.branchOf(t, "feat", `git log -1 --format=%s`).stdout, "first\n")
	wantEqual(t, w.plain(t, branches), "main=one other=one")
	got := w.branchOf(t, "feat", `git commit -qm second --allow-empty; echo left >left`)
	expect.Contains(t, oneLine(got.stderr), "git, feat: you removed it, and the agent went on with it; the agent's commits are on claudebox/feat/feat")
	wantEqual(t, w.plain(t, branches+"; git log --format=%s main..claudebox/feat/feat"), "claudebox/feat/feat=what the agent left uncommitted main=one other=one what the agent left uncommitted\nsecond\nfirst")
	expect.Contains(t, oneLine(succeed(t, w.claudebox("branch", "list"))), "feat removed")
	w.plain(t, "git branch -q feat claudebox/feat/feat")
	if said := run(t, w.claudebox("plan", "--branch", "feat")); strings.Contains(oneLine(said.stdout+said.stderr), "not there any more") {
		t.Error("it says that the branch is gone, which is there again")
	}
	w.branchOf(t, "feat", `git commit -qm third --allow-empty`)
	wantEqual(t, w.plain(t, branches), "feat=third main=one other=one")
	w.plain(t, "git branch -qD feat")
	wantEqual(t, succeed(t, w.claudebox("branch", "remove", "feat")), "removed the checkout of feat; your branches stay\n")
	wantEqual(t, w.plain(t, branches), "main=one other=one")
}

// A project that was moved finds the checkouts of its branches again; another one that is at its path now does not.
func TestACheckoutOfABranchGoesWithItsRepository(t *testing.T) {
	w := onBranch(t)
	w.branchOf(t, "feat", `git commit -qm one --allow-empty; head -c 2000000 /dev/zero >big`)
	first := w.project
	w.plain(t, "mv ../project ../moved")
	w.project = w.path("moved")
	got := w.branchOf(t, "feat", `git log -1 --format=%s; ls big`)
	wantEqual(t, got.stdout, "one\nbig\n")
	if got := succeed(t, w.claudebox("branch", "list")); strings.Count(got, "feat") != 1 {
		t.Errorf("the list is %s", got)
	}
	w.plain(t, "git clone -q . "+first)
	w.project = first
	wantEqual(t, run(t, w.claudebox("branch", "list")).stdout, "")
	got = w.branchOf(t, "feat", `git log -1 --format=%s; ls big 2>&1 || :; git status --porcelain`)
	wantEqual(t, got.stdout, "one\nls: cannot access 'big': No such file or directory\n")
}

// HEAD is on a branch without a commit: branches can be begun elsewhere, listed and compared.
func TestABranchBesideAnUnbornOne(t *testing.T) {
	w := onBranch(t)
	w.plain(t, "git stash -qu; git switch -q --orphan new")
	wantRefused(t, run(t, w.session("true", "--branch", "feat")), "--from BRANCH")
	w.branchOf(t, "feat", `git commit -qm work --allow-empty`, "--from", "main")
	if got := succeed(t, w.claudebox("branch", "list")); !regexp.MustCompile(`feat +kept +[1-9] +0`).MatchString(got) {
		t.Errorf("the list is %s", got)
	}
	if got := succeed(t, w.claudebox("branch", "diff", "feat")); !strings.Contains(got, "+one\n") {
		t.Errorf("the difference is %s", got)
	}
	wantEqual(t, w.plain(t, "git symbolic-ref HEAD; git log -1 --format=%s feat"), "refs/heads/new\nwork")
}

// Ctrl-C ends a checkout that takes long. Nothing of it stays, and the same words begin it anew.
func TestACheckoutOfABranchIsInterrupted(t *testing.T) {
	w := onBranch(t)
	w.plain(t, `for f in $(seq 100); do echo $f >f$f; done; echo 'f9* filter=slow' >.gitattributes; git add .; git commit -qm many; git config filter.slow.smudge 'sleep 600; cat'`)
	session := w.claudebox("shell", "--yes", "--branch", "feat", "--from", "HEAD", "--", "true")
	must.Do(t, session.Start())
	w.awaitBranch(t, "feat")
	_ = session.Process.Signal(os.Interrupt)
	if err := session.Wait(); session.ProcessState.ExitCode() != 130 {
		t.Errorf("it ended with %v", err)
	}
	wantEqual(t, w.plain(t, "ls ~/.claudebox/branches/*/; git worktree list | wc -l; git config --unset filter.slow.smudge"), "1")
	got := w.branchOf(t, "feat", `git status --porcelain | head -3; ls f* | wc -l`, "--from", "HEAD")
	wantEqual(t, got.stdout, "100\n")
}

// A profile has the agent work on a branch by default: one beside the branch that the user is on.
func TestAProfileHasTheAgentWorkOnABranch(t *testing.T) {
	w := onBranch(t)
	profile := w.write(t, "p.yaml", "workspace: branch\n")
	in := func(flags ...string) string {
		t.Helper()
		return succeed(t, w.session(`git branch --show-current; git commit -qm work --allow-empty`, append([]string{"--no-report", "--profile", profile}, flags...)...))
	}
	before := w.plain(t, users)
	wantEqual(t, in(), "agent/main\n")
	wantEqual(t, in("--branch", "feat"), "feat\n")
	wantEqual(t, w.plain(t, "git log --format=%s -1 agent/main; git log --format=%s -1 feat"), "work\nwork")
	wantEqual(t, w.plain(t, users), before)
	if got := succeed(t, w.claudebox("plan", "--profile", profile)); !strings.Contains(got, "agent/main") {
		t.Errorf("the plan is %s", got)
	}
	wantRefused(t, run(t, w.session("true", "--branch", "x", "--no-branch")), "leave one of them out")
	w.plain(t, "git stash -qu; git switch -q agent/main")
	wantRefused(t, run(t, w.session("true", "--profile", profile)), "it is checked out in")
	w.plain(t, "git switch -q --detach")
	wantEqual(t, in(), "agent/detached\n")
	w.plain(t, "git switch -q main")
	wantEqual(t, in("--no-branch"), "main\n")
	wantEqual(t, w.plain(t, "git log --format=%s -1 main"), "work")
	w.plain(t, "rm -rf .git")
	wantRefused(t, run(t, w.session("true", "--profile", profile)), "git init")
}

// What the agent sees of what the user does below it: of tracked and untracked files nothing; in an ignored folder under a
// layer what was edited, but for what it has written itself; what is new beside such a folder, at the next start.
func TestTheUserWorksBelowASessionOnABranch(t *testing.T) {
	w := onBranch(t)
	w.plain(t, fill)
	session := w.session(`echo own >node_modules/m1; cat node_modules/m2 >/dev/null; git commit -qm ready --allow-empty
for i in $(seq 1200); do git rev-parse -q --verify go >/dev/null && break; sleep 0.05; done
cat src/a node_modules/m1 node_modules/m2 node_modules/m3 node_modules/m4; ls src/new later more.log 2>/dev/null || :; cat .env small/.env; ls node_modules/m5 2>/dev/null || :; git status --porcelain`, "--branch", "feat")
	var said strings.Builder
	session.Stdout = &said
	must.Do(t, session.Start())
	w.awaitBranch(t, "feat")
	must.Await(t, "it is committed", func() bool { return w.plain(t, "git log -1 --format=%s feat") == "ready" })
	w.plain(t, `for n in 1 2 3; do echo user$n >node_modules/m$n; done; echo user4 >node_modules/x; mv node_modules/x node_modules/m4; rm node_modules/m5
echo user >src/a; echo user >src/new; mkdir later; echo l >later/l; echo later/ >>.gitignore; echo m >more.log; echo TOKEN=2 >.env; git stash -q; git switch -q other; git switch -q main; git stash pop -q`)
	before := w.plain(t, `cat node_modules/m[1-4] src/a src/new .env; git status --porcelain`)
	w.plain(t, "git branch go")
	if err := session.Wait(); err != nil {
		t.Error(err)
	}
	wantEqual(t, said.String(), "one\nown\nuser2\nuser3\nuser4\n")
	wantEqual(t, w.plain(t, `cat node_modules/m[1-4] src/a src/new .env; git status --porcelain`), before)
	w.plain(t, "git add .gitignore; git commit -qm rule -- .gitignore")
	got := w.branchOf(t, "feat2", `cat later/l more.log; ls src/new 2>/dev/null || :`)
	wantEqual(t, got.stdout, "l\nm\n")
}

// At the end a line names what of the branch the user's tools would run.
func TestWhatToolsRunOfABranchIsNamed(t *testing.T) {
	w := onBranch(t)
	got := w.branchOf(t, "feat", `echo x >.envrc; mkdir -p .vscode; echo '{}' >.vscode/tasks.json; echo x >plain; ln -s src .husky; echo a: >Makefile; git add .; git commit -qm planted; echo '{}' >.mcp.json`)
	expect.Contains(t, got.stderr, "commits that your HEAD does not have: 2;", ".envrc", ".vscode/tasks.json", ".husky", ".mcp.json", "Makefile")
	if strings.Contains(got.stderr, "plain") {
		t.Errorf("told %s", got.stderr)
	}
}

// Agents on branches of their own at once, two or ten in checks/long: each edits, uses the shared node_modules, serves
// on port 3000, commits, and plants what tools of the host would run, of every kind. Meanwhile the user works, a prompt
// asks git again and again in every folder of the project, and something walks over all of the user's home as an indexer
// does. Nothing ran, no file appeared, and the branches are merged by plain git.
func TestAgentsPlantOnBranchesAtOnce(t *testing.T) {
	count := trial.Count(2, 10)
	w := onBranch(t)
	w.plain(t, fill+`; git reset -q --hard; rm -f untracked`)
	w.write(t, "taken.sh", "#!/bin/sh\necho taken >>"+w.path("TAKEN")+"\nfalse\n")
	must.Do(t, os.Chmod(w.path("taken.sh"), 0o755))
	const agent = `n=$1 t=$HOME/taken.sh
python3 -m http.server 3000 --bind 127.0.0.1 >/dev/null 2>&1 & for i in $(seq 100); do (: </dev/tcp/127.0.0.1/3000) 2>/dev/null && break; sleep 0.05; done; (: </dev/tcp/127.0.0.1/3000)
[ "$(cat node_modules/m7)" = 7 ]; echo $n >node_modules/m7
git config core.fsmonitor "$t"; git config core.hooksPath $PWD/hooks; git config core.pager "$t"; mkdir -p hooks; for h in post-checkout post-index-change reference-transaction pre-commit; do printf '#!/bin/sh\n%s\n' "$t" >.git/hooks/$h; chmod +x .git/hooks/$h; done
for d in . src node_modules deep/er; do mkdir -p $d/evil$n; git -C $d/evil$n init -q; git -C $d/evil$n config core.fsmonitor "$t"; done; cp -r src/evil$n/.git src/.git; cp -r src/evil$n/.git/. bare$n 2>/dev/null || { mkdir bare$n; cp -r src/evil$n/.git/* bare$n; }
git -c core.hooksPath=/dev/null commit -qm x --allow-empty 2>/dev/null || :; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),gitlink$n
printf '%s\n' "$t" >.envrc; mkdir -p .vscode .claude .githooks; printf '{"tasks":[{"command":"%s","runOptions":{"runOn":"folderOpen"}}]}' "$t" >.vscode/tasks.json; printf '{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"%s"}]}]}}' "$t" >.claude/settings.json
printf '* filter=x\n' >.gitattributes; git config filter.x.clean "$t"; git config filter.x.smudge "$t"; rm .gitattributes
echo $n >work$n; rm -rf src/.git; git -c core.hooksPath=/dev/null -c core.fsmonitor=false add work$n; git -c core.hooksPath=/dev/null -c core.fsmonitor=false commit -qm "work $n"; touch src/planted; cp -r src/evil$n/.git src/.git`
	stop := make(chan struct{})
	var outside sync.WaitGroup
	looks := 0
	outside.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			w.plain(t, `for d in $(find . -name .git -prune -o -name node_modules -prune -o -type d -print; find ~/.claudebox -type d 2>/dev/null); do (cd $d 2>/dev/null && export GIT_OPTIONAL_LOCKS=0 && git status >/dev/null 2>&1 && git log --oneline -1 >/dev/null 2>&1) || :; done; find ~ -type f -name tasks.json -not -path '*/.cache/*' 2>/dev/null | wc -l`)
			looks++
		}
	})
	before := w.plain(t, `git ls-files | sort; find . -path ./.git -prune -o -print | sort`)
	appeared := watched(t, w.project)
	var agents sync.WaitGroup
	results := make([]outcome, count)
	for n := range results {
		agents.Go(func() {
			tier := []string{"inet", "allow", "none"}[n%3]
			results[n] = run(t, w.claudebox("shell", "--yes", "--network", tier, "--branch", fmt.Sprintf("w%d", n), "--", "bash", "-euc", agent, "x", fmt.Sprint(n)))
		})
	}
	for n := range 3 {
		w.plain(t, fmt.Sprintf(`echo %d >>README.md; git commit -qam "mine %[1]d"; git switch -q other; git switch -q main`, n))
	}
	agents.Wait()
	close(stop)
	outside.Wait()
	for n, got := range results {
		if got.status != 0 {
			t.Errorf("agent %d: status %d, %s%s", n, got.status, got.stdout, got.stderr)
		}
	}
	users := strings.Fields(w.plain(t, "git ls-tree -r --name-only main; git ls-tree -r --name-only other"))
	isUsers := func(name string) bool { // their git writes it, as it switches
		return slices.ContainsFunc(users, func(at string) bool { return filepath.Base(at) == name })
	}
	if names := slices.DeleteFunc(appeared(), isUsers); len(names) > 0 {
		t.Errorf("in the user's folder there appeared %q", names)
	}
	if looks == 0 || exists(w.path("TAKEN")) {
		t.Errorf("%d looks; something ran", looks)
	}
	wantEqual(t, w.plain(t, `git ls-files | sort; find . -path ./.git -prune -o -print | sort`), before)
	each := fmt.Sprintf("for n in $(seq 0 %d); do ", count-1)
	got := w.plain(t, each+`[ "$(git show w$n:work$n)" = $n ]; done; git fsck --strict --no-dangling; git worktree list | wc -l; git log --oneline main | wc -l; cat node_modules/m7; ls .git | grep -c -e lock -e claudebox || :`)
	wantEqual(t, got, "1\n6\n7\n0")
	w.plain(t, each+`git merge -q -m m$n $(git log --format=%H --grep "^work $n$" w$n | head -1); [ "$(cat work$n)" = $n ]; done; git fsck --strict --no-dangling`)
	if exists(w.path("TAKEN")) {
		t.Error("the merge ran something")
	}
}

// watched begins to note all names that appear in a folder and those below it, but for git's own. It returns what ends
// that.
func watched(t *testing.T, folder string) (appeared func() []string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must.Do(t, err)
	err = filepath.WalkDir(folder, func(at string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if e.Name() == ".git" {
			return fs.SkipDir
		}
		_, err = unix.InotifyAddWatch(fd, at, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR)
		return err
	})
	must.Do(t, err)
	return func() (names []string) {
		defer unix.Close(fd)
		buffer := make([]byte, 1<<20)
		for {
			n, err := unix.Read(fd, buffer)
			if err != nil || n <= 0 {
				return names
			}
			for at := 0; at+unix.SizeofInotifyEvent <= n; {
				length := int(binary.NativeEndian.Uint32(buffer[at+12:]))
				at += unix.SizeofInotifyEvent
				names = append(names, strings.TrimRight(string(buffer[at:at+length]), "\x00"))
				at += length
			}
		}
	}
}

// What is not committed goes along where it was asked for: as a commit of its own, and as copies. Secrets do not, and
// the user's index and folder stay as they are.
func TestUncommittedWorkGoesAlongOnABranch(t *testing.T) {
	w := onBranch(t)
	w.plain(t, `echo TOKEN=1 >.env.local; git add -f .env.local; git commit -qm env; echo TOKEN=secret >.env.local; mkdir notes; echo n >notes/n; echo TOKEN=secret >notes/.env; rm src/a`)
	before := w.plain(t, users)
	got := w.branchOf(t, "feat", `git log --format=%s main..; cat mod staged notes/n notes/.env; ls src untracked 2>&1 || :; git status --porcelain; git grep -c secret $(git rev-list main..) -- || :`, "--with-changes", "--with", "notes")
	want := "changes that were not committed\none\nmine\nstaged\nn\nls: cannot access 'src': No such file or directory\nls: cannot access 'untracked': No such file or directory\n?? notes/\n"
	if got.stdout != want {
		t.Errorf("it has\n%s\nwant\n%s\n%s", got.stdout, want, got.stderr)
	}
	wantEqual(t, w.plain(t, users), before)
	wantRefused(t, run(t, w.session("true", "--branch", "other", "--with-changes")), "begins at HEAD")
	wantRefused(t, run(t, w.session("true", "--branch", "x", "--with", ".env")), "looks secret")
	wantRefused(t, run(t, w.session("true", "--branch", "x", "--with", "/etc/passwd")), "not in the project")
	wantRefused(t, run(t, w.session("true", "--branch", "x", "--with", ".git/config")), "not in the project")
	wantRefused(t, run(t, w.session("true", "--with-changes")), "--branch")
	w.branchOf(t, "feat", `cat notes/n`, "--with-changes", "--with", "notes")
	wantEqual(t, w.plain(t, users), before)
}

// git takes no path that lies in a submodule: with a hidden file in one no branch began with what is not committed.
func TestUncommittedWorkGoesAlongBesideASubmoduleWithASecret(t *testing.T) {
	w := onBranch(t)
	w.plain(t, `git init -q ../lib; git -C ../lib commit -qm lib --allow-empty
		git -c protocol.file.allow=always submodule -q add ../lib sm; git commit -qm sm; echo TOKEN=secret >sm/.env; echo more >>mod`)
	got := w.branchOf(t, "feat", `git log -1 --format=%s; tail -n1 mod; cat sm/.env 2>&1 || :`, "--with-changes")
	if got.status != 0 || !strings.HasPrefix(got.stdout, "changes that were not committed\nmore\n") || strings.Contains(got.stdout, "secret") {
		t.Error(got)
	}
}

// A session on a branch works in each layout of a repository, and leaves the user's checkout as it is.
func TestASessionOnABranchIn(t *testing.T) {
	const work = `echo agent >>README.md; git commit -qam work; echo left >left`
	for name, tc := range trial.Some(3, map[string]struct {
		user, dir, branch, agent string
		elsewhere                string // where the repository is; empty: in the project
	}{
		"a subfolder":                        {user: "mkdir -p sub/deep; touch sub/deep/x; git add sub; git commit -qm sub", dir: "project/sub/deep", agent: `[ "$(basename $PWD)" = deep ]; cd ../..; ` + work},
		"an ignored folder":                  {user: "echo out/ >.git/info/exclude; mkdir out; touch out/x", dir: "project/out", agent: `[ "$(basename $PWD)" = out ]; cd ..; ` + work},
		"an untracked folder":                {user: "mkdir new", dir: "project/new", agent: `[ "$(basename $PWD)" = project ]; ` + work},
		"a linked worktree":                  {user: "git worktree add -q -b side ../side", dir: "side", agent: `[ -d .git ]; ` + work},
		"a detached HEAD":                    {user: "git switch -q --detach", agent: work},
		"a name with folders":                {branch: "a/b.c/d-1", agent: work},
		"a name of letters of other scripts": {branch: "größe/файл-修复", agent: work},
		"a long name":                        {branch: strings.Repeat("long-name/", 20) + "x", agent: work},
		"packed references":                  {user: "git branch feat; git pack-refs --all; git gc -q", agent: work},
		"SHA-256":                            {user: "rm -rf .git; git init -q -b main --object-format=sha256; git add .; git commit -qm sha256", agent: work},
		"reftable":                           {user: "rm -rf .git; git init -q -b main --ref-format=reftable 2>/dev/null || git init -q -b main; git add .; git commit -qm table", agent: work},
		"a shallow clone":                    {user: "git commit -qm two --allow-empty; git clone -q --depth 1 file://$PWD ../shallow; rm -rf .git; mv ../shallow/.git .git", agent: work},
		"a sparse checkout":                  {user: "mkdir in out; touch in/x out/x; git add in out; git commit -qm dirs; git sparse-checkout set in", agent: `[ -e in/x ]; ` + work},
		"a separate git folder":              {user: "git init -q --separate-git-dir ../elsewhere.git; git config core.worktree $PWD", agent: work},
		"a bare repository beside":           {user: "git clone -q --bare . ../bare.git; git -C ../bare.git worktree add -q ../one -b one", dir: "one", elsewhere: "bare.git", agent: work},
		"a submodule of another": {
			user: "git init -q ../top; git -C ../top -c protocol.file.allow=always submodule -q add $PWD sm; git -C ../top commit -qm sm; ls ../top/sm", dir: "top/sm", elsewhere: "top/sm", agent: work,
		},
		"a submodule": {
			user:  "git init -q ../lib; git -C ../lib commit -qm l --allow-empty; git -c protocol.file.allow=always submodule -q add ../lib sm; git commit -qm sm",
			agent: `git submodule status; ` + work,
		},
		"attributes with a filter": {user: `echo '*.bin filter=lfs' >.gitattributes; echo data >x.bin; git config filter.lfs.clean cat; git config filter.lfs.smudge cat; git config filter.lfs.required true; git add .; git commit -qm lfs`, agent: `[ "$(cat x.bin)" = data ]; ` + work},
		"odd names of files":       {user: `mkdir -p $'a\nb' ' c'; echo x >$'a\nb/\xff'; echo y >' c/"q"'; git add -A; git commit -qm odd`, agent: `echo z >$'new\n\xfe'; ` + work},
		"another user's mode":      {user: `umask 077; echo x >private; chmod 755 README.md; git commit -qam mode`, agent: `[ -x README.md ]; ` + work},
		"a case of its own":        {user: `git config core.autocrlf true; printf 'a\r\nb\r\n' >crlf; git add .; git commit -qm crlf 2>/dev/null`, agent: `[ -z "$(git status --porcelain)" ]; ` + work},
	}) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity)
			w.plain(t, tc.user+"\n:")
			const state = `git rev-parse HEAD; git status --porcelain --ignored; git ls-files -s; find . -name .git -prune -o -print | sort; git symbolic-ref -q HEAD || :`
			before := w.plain(t, state)
			main, branch := w.project, tc.branch
			if tc.dir != "" {
				w.project = w.path(tc.dir)
			}
			if branch == "" {
				branch = "feat"
			}
			got := w.branchOf(t, branch, tc.agent)
			again := w.branchOf(t, branch, `git status --porcelain; git log -1 --format=%s`)
			w.project = main
			if tc.elsewhere != "" {
				w.project = w.path(tc.elsewhere)
			}
			wantEqual(t, w.plain(t, "git log --format=%s -2 '"+branch+"' --"), "what the agent left uncommitted\nwork")
			w.project = main
			if again.stdout != "what the agent left uncommitted\n" {
				t.Errorf("the second session has %q\n%s", again.stdout, got.stderr)
			}
			wantEqual(t, w.plain(t, state), before)
			if text := w.plain(t, "git fsck --strict --no-dangling 2>&1"); strings.Contains(text, "error") {
				t.Error(text)
			}
		})
	}
}

// A submodule that the user has checked out is there on a branch, also one in another, at the branch's commit, in a
// repository of the agent's own. What is not committed in one, or is committed in one of which the user has no checkout,
// is nowhere else: it is named, and is not removed with the checkout.
func TestSubmodulesOfABranch(t *testing.T) {
	for _, dir := range []string{"project", "side"} { // the repository, and a linked worktree of it
		t.Run(dir, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity+"[protocol \"file\"]\n\tallow = always\n")
			w.plain(t, `for d in deep lib old; do git init -q ../$d; (cd ../$d; echo $d >$d; git add .; git commit -qm $d); done
				git -C ../lib submodule -q add ../deep a/in; git -C ../lib commit -qm in
				git submodule -q add ../lib my/sm; git submodule -q add ../old old; git commit -qm sm; git submodule -q update --init --recursive
				git -C old commit -qm newer --allow-empty; git commit -qm newer old; git -C old reset -q --hard HEAD~; git -C old reflog expire --expire=now --all; git -C old gc -q --prune=now
				git -C my/sm branch own; git worktree add -q ../side -b side; git -C ../side submodule -q update --init --recursive my/sm`)
			w.project = w.path(dir)
			state := `git -C my/sm status --porcelain; git -C my/sm for-each-ref; git -C my/sm config -l; cat my/sm/.git; find . -path ./.git -prune -o -print | sort`
			before := w.plain(t, state)
			inside := func(script string) string { return w.branchOf(t, "feat", script).stderr }
			if got := oneLine(run(t, w.claudebox("plan", "--branch", "feat")).stdout); !strings.Contains(got, "submodules: my/sm, my/sm/a/in") {
				t.Errorf("the plan: %s", got)
			}
			const stay, dirty = "commits and changes in submodules that you have not checked out stay with the checkout", "what is not committed in submodules"
			first := inside(`[ "$(cat my/sm/lib my/sm/a/in/deep)" = "$(echo lib; echo deep)" ]; [ ! -e old/.git ]; git status --porcelain | tee /tmp/s; [ ! -s /tmp/s ]
				git -C my/sm status --porcelain | tee /tmp/s; [ ! -s /tmp/s ]; git submodule status --recursive my/sm | tee /tmp/s; [ $(grep -c "^ " /tmp/s) = 2 ]
				git -C my/sm remote get-url origin | grep /lib; git -C my/sm/a/in rev-parse origin/HEAD; [ -z "$(git -C my/sm branch --list own)" ]`)
			if strings.Contains(first, stay) || strings.Contains(first, dirty) || dir == "project" && !strings.Contains(first, "submodules are not there, as yours do not have their commits: old;") {
				t.Errorf("the first session: %s", first)
			}
			if got := inside(`git -C my/sm commit -qm new --allow-empty; echo x >my/sm/a/in/x; git commit -qam bump
				git clone -q my/sm my/sm/a/in/own; git -C my/sm/a/in submodule -q add ./own own`); !strings.Contains(got, dirty+" is kept with the checkout, and does not cross: my/sm/a/in\n") {
				t.Errorf("it says %s", got)
			}
			if got := run(t, w.claudebox("branch", "diff", "feat")); !strings.Contains(got.stdout, "+Subproject commit") {
				t.Errorf("%+v", got)
			}
			wantRefused(t, run(t, w.claudebox("branch", "remove", "feat")), dirty)
			if got := inside(`cd my/sm/a/in; git commit -qam own; git -C own commit -qm more --allow-empty`); !strings.Contains(got, stay+": push them from inside: my/sm/a/in/own\n") {
				t.Errorf("it says %s", got)
			}
			wantRefused(t, run(t, w.claudebox("branch", "remove", "feat")), stay)
			inside(`rm my/sm/a/in/x; git -C my/sm/a/in/own update-ref refs/remotes/origin/pushed HEAD`)
			if got := run(t, w.claudebox("branch", "remove", "feat")); got.status != 0 {
				t.Errorf("what was pushed: %+v", got)
			}
			wantEqual(t, w.plain(t, `git -C my/sm log -1 --format=%s feat; git -C my/sm branch -qD feat; `+state), "new\n"+before)
		})
	}
}

// A session that is killed at any moment of its start, or whose start fails as there is no room, leaves what the next one
// goes on with; a record that cannot be read is no empty one.
func TestASessionOnABranchIsCutShort(t *testing.T) {
	w := onBranch(t)
	w.plain(t, `head -c 3000000 /dev/urandom >large; for i in $(seq 300); do echo $i >f$i; done; git add large f*; git commit -qm large`)
	before := w.plain(t, users)
	for n := range 8 {
		cmd := w.session("sleep 600", "--branch", "feat")
		must.Do(t, cmd.Start())
		time.Sleep(time.Duration(n) * 25 * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	w.plain(t, `for r in $(grep -ls '"feat"' ~/.claudebox/branches/*/*/record.json); do i=$(dirname $r)/git/inner; [ ! -d $i ] || touch $i/index.lock; done`) // of a git that was killed
	got := w.branchOf(t, "feat", `git status --porcelain; ls f* | wc -l; git commit -qm fine --allow-empty`)
	wantEqual(t, got.stdout, "300\n")
	full := w.session("true", "--branch", "small")
	full.Args = append([]string{"bash", "-c", `ulimit -f 1000; exec "$@"`, "x", full.Path}, full.Args[1:]...)
	full.Path, _ = exec.LookPath("bash")
	wantRefused(t, run(t, full), "check out branch small")
	wantEqual(t, w.plain(t, `grep -l '"small"' ~/.claudebox/branches/*/*/record.json || :`), "")
	w.branchOf(t, "small", "true")
	w.plain(t, `r=$(grep -l '"small"' ~/.claudebox/branches/*/*/record.json); sed -i 's/"Filled": true/"Filled": false/' $r; touch $(dirname $r)/git/inner/index.lock`) // as of a git that was killed
	got = w.branchOf(t, "small", `git status --porcelain; wc -c <large`)
	wantEqual(t, got.stdout, "3000000\n")
	wantEqual(t, w.plain(t, users), before)
	w.plain(t, `for r in ~/.claudebox/branches/*/*/record.json; do echo '{"Version": 7' >$r; done`)
	wantRefused(t, run(t, w.session("true", "--branch", "feat")), "record.json")
	wantRefused(t, run(t, w.claudebox("branch", "remove", "feat")), "--force")
	succeed(t, w.claudebox("branch", "remove", "--force", "feat"))
	w.branchOf(t, "feat", `git log -1 --format=%s | grep -qx fine`)
	wantEqual(t, w.plain(t, users), before)
}

// A filter of the agent's is run by claudebox's git, in its box. What it can see there must not hold what the agent may
// not have: the user's folder, with what is hidden in it.
func TestAFilterOfTheAgentsStealsFromTheBoxOfABranch(t *testing.T) {
	w := onBranch(t)
	w.plain(t, "echo TOKEN=secret >.env; echo TOKEN=secret >config-secret.pem")
	const steal = `{ cp -r /run/claudebox/users stolen; ls -R /home /run /root >stolen-homes; env >stolen-env; cat /proc/*/environ >stolen-env2; cat /proc/self/mountinfo >stolen-mounts; } 2>/dev/null
cat
`
	w.branchOf(t, "feat", `{ echo "#!$(readlink -f "$(command -v bash)")"; cat <<'X'
`+steal+`X
} >steal.sh; chmod +x steal.sh; echo '* filter=x' >.gitattributes; git add .; git commit -qm filters
git config filter.x.clean ./steal.sh; git config filter.x.smudge ./steal.sh; git config core.fsmonitor ./steal.sh; git config diff.x.textconv ./steal.sh; git config core.hooksPath .; cp steal.sh post-merge; cp steal.sh post-index-change; touch -d '2 hours ago' README.md; echo changed >src/a; echo new >new`)
	w.plain(t, `git update-ref refs/heads/feat $(b=$(git mktree < <(git ls-tree feat; printf '100644 blob %s\tmore\n' $(echo more | git hash-object -w --stdin))); git commit-tree -p feat -m theirs $b)`)
	succeed(t, w.claudebox("branch", "list"))
	run(t, w.claudebox("branch", "diff", "feat"))
	got := w.branchOf(t, "feat", `grep -rl TOKEN stolen* . 2>/dev/null | grep -v steal.sh || :; ls -d stolen* || :`)
	if strings.Contains(got.stdout, ".env") || strings.Contains(got.stdout, "pem") {
		t.Errorf("it has\n%s", got.stdout)
	}
	if !strings.Contains(got.stdout, "stolen") {
		t.Errorf("no filter ran: %s", got.stdout)
	}
}
