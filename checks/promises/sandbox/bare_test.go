//go:build lab

package sandbox_test

import (
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// hooked makes of the repository $1 what runs a program of the agent's, whatever the user's git does there.
const hooked = `hooked() {
  for set in core.bare=false core.worktree=.. "core.fsmonitor=touch $T; false" "core.sshCommand=touch $T" "alias.st=!touch $T"; do
    git config -f $1/config "${set%%=*}" "${set#*=}" || :
  done
  mkdir -p $1/hooks || :
  for h in pre-receive update post-receive post-update reference-transaction post-index-change; do
    printf '#!/bin/sh\ntouch %s\n' "$T" >$1/hooks/$h && chmod +x $1/hooks/$h || :
  done
}
`

// An agent plants settings and hooks in a bare repository of the user's, who pushes there and has a prompt in it.
//
// Promise: nothing planted for your git.
func TestAnAgentHooksTheUsersBareRepository(t *testing.T) {
	for name, tc := range map[string]struct{ bare, tracked string }{
		"below the project":      {bare: "project/d/store.git"},
		"with any name":          {bare: "project/store"},
		"below a mounted folder": {bare: "mounted/d/store.git"},
		"among the files of git": {bare: "project/d/fixture.git", tracked: "git add -f d; git commit -qm fixture; "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity)
			bare := w.path(tc.bare)
			w.folder(t, "mounted")
			w.plain(t, "git clone -q --bare . "+bare+"; "+tc.tracked+"git clone -q "+bare+" ../user")
			before := w.plain(t, "cat "+bare+"/config; ls "+bare+"/hooks")
			session := beside(t, w.session(`T=$PWD/TAKEN; `+hooked+`hooked `+bare+` 2>/dev/null
				touch planted; for i in $(seq 600); do [ -e seen ] && break; sleep 0.05; done`, "--mount-rw", w.path("mounted")))
			must.Appear(t, w.path("project/planted"))
			const use = `cd ../user; git commit -qm user --allow-empty; git push -q; cd $bare; git log --oneline -1; git status 2>&1 || :; git st 2>&1 || :; git fetch -q ssh://x.invalid/y 2>&1 || :`
			w.plain(t, "bare="+bare+"; "+use)
			w.write(t, "project/seen", "")
			if got := <-session; got.status != 0 || strings.Contains(got.stderr, "taken out") {
				t.Errorf("status %d, %s", got.status, got.stderr)
			}
			w.plain(t, "bare="+bare+"; "+use)
			w.plain(t, "cd ..; [ -z \"$(find . -name TAKEN)\" ]")
			wantEqual(t, w.plain(t, "cat "+bare+"/config; ls "+bare+"/hooks"), before)
			wantEqual(t, w.plain(t, "cd "+bare+"; git fsck --strict --no-dangling 2>&1; git log --format=%s -2 main"), "user\nuser")
		})
	}
}

// What one side pushes into a bare repository of the user's, the other one has: also a default branch with another name.
func TestWhatIsPushedIntoABareRepositoryCrosses(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	w.plain(t, "git clone -q --bare . store.git; git remote add store ./store.git; git clone -q store.git ../user")
	session := beside(t, w.session(`git commit -qm agents --allow-empty; git push -q store HEAD:topic
		for i in $(seq 600); do [ "$(git --git-dir=store.git log -1 --format=%s main)" = users ] && break; sleep 0.05; done
		git clone -q store.git $HOME/c && git -C $HOME/c log -1 --format=%s
		git -C store.git branch -m main trunk; git status --short; git add -A; git commit -qm all --allow-empty`))
	w.plain(t, `for i in $(seq 600); do [ "$(git --git-dir=store.git log -1 --format=%s topic -- 2>/dev/null)" = agents ] && break; sleep 0.05; done
		cd ../user; git commit -qm users --allow-empty; git push -q`)
	if got := <-session; got.status != 0 || got.stdout != "users\n" || got.stderr != "" {
		t.Errorf("status %d, %s%s", got.status, got.stdout, got.stderr)
	}
	got := w.plain(t, `cd store.git; git fsck --strict --no-dangling 2>&1; git symbolic-ref HEAD; git log --format=%s -1 topic; git log --format=%s -1; git branch | wc -l
		git config core.bare; ls index 2>/dev/null || :; cd ..; git ls-files; git log -1 --format=%s`)
	wantEqual(t, got, "refs/heads/trunk\nagents\nusers\n2\ntrue\nREADME.md\nall")
}

// Some keep a bare repository with its worktrees beside it, or in it, and start in the folder above.
func TestABareRepositoryBelowTheProjectHasWorktrees(t *testing.T) {
	for name, tc := range map[string]struct{ make, bare, one string }{
		"beside it":            {"git clone -q --bare $s store.git; git -C store.git worktree add -q ../one", "store.git", "one"},
		"in it":                {"git clone -q --bare $s store; git -C store worktree add -q one; echo x >store/notes", "store", "store/one"},
		"beside it, by a file": {"git clone -q --bare $s .bare; echo 'gitdir: ./.bare' >.git; git worktree add -q one", ".bare", "one"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repository(t)
			w.write(t, ".gitconfig", identity)
			w.plain(t, "mv ../project ../s; mkdir ../project; cd ../project; s=../s; "+tc.make)
			script := `cd ` + tc.one + `; echo x >x; git add x; git commit -qm agents; git status --short; echo kept >loose
				cd ../` + strings.Repeat("../", strings.Count(tc.one, "/")) + tc.bare + `; git worktree add -q $HOME/two 2>/dev/null; cd $HOME/two; git commit -qm second --allow-empty; git worktree list | wc -l`
			wantEqual(t, w.inside(t, script), "3\n")
			got := w.plain(t, "cd "+tc.one+"; git log --format=%s -1; git status --short; cat x loose; git log --format=%s -1 two; cd "+w.project+"/"+tc.bare+"; git fsck --strict --no-dangling 2>&1; git worktree list | wc -l")
			wantEqual(t, got, "agents\n?? loose\nx\nkept\nsecond\n2")
		})
	}
}

// A test has repositories among its files: the agent reads them, and changes them on a branch of its own.
func TestARepositoryAmongTheFilesOfATest(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	w.plain(t, "git clone -q --bare . t/fixture.git; rm -r t/fixture.git/hooks; touch t/fixture.git/refs/keep; git add -f .; git commit -qm fixture")
	got := run(t, w.session(`git --git-dir=t/fixture.git log --format=%s -1; cp -r t/fixture.git $HOME/; git -C $HOME/fixture.git config a.b c; git status --short
		for try in 'touch t/fixture.git/commondir' 'mkdir t/fixture.git/hooks' 'mv t t2' 'rm t/fixture.git/HEAD'; do ! $try 2>/dev/null || echo "$try"; done; echo x >t/y; git add t/y; git commit -qm more`))
	if got.status != 0 || got.stdout != "begin\n" || got.stderr != "" {
		t.Errorf("status %d, %s%s", got.status, got.stdout, got.stderr)
	}
	if said := oneLine(succeed(t, w.claudebox("plan"))); !strings.Contains(said, "t/fixture.git: read-only inside, as your git would obey what is written there") {
		t.Error(said)
	}
	w.inside(t, "git -C t/fixture.git update-ref refs/heads/new main; git add -A; git commit -qm changed", "--branch", "fix")
	wantEqual(t, w.plain(t, "git status --short; git log --format=%s --all -1 -- t/fixture.git/refs/heads/new"), "changed")
}

// An agent makes a repository of a folder of the user's, where a prompt is.
func TestAnAgentMakesARepositoryOfAFolderThatWasThere(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	w.write(t, "project/d/file", "x\n")
	session := beside(t, w.session(`T=$PWD/TAKEN; `+hooked+`mkdir d/objects d/refs; hooked d; echo ref: refs/heads/main >d/HEAD; sleep 0.5
		touch planted; for i in $(seq 600); do [ -e seen ] && break; sleep 0.05; done; cat d/HEAD`))
	must.Appear(t, w.path("project/planted"))
	const prompt = "cd d; git status; git st 2>&1 || :"
	w.plain(t, prompt)
	w.write(t, "project/seen", "")
	if got := <-session; got.status != 0 || got.stdout != "ref: refs/heads/main\n" {
		t.Errorf("status %d, %s%s", got.status, got.stdout, got.stderr)
	}
	w.plain(t, prompt)
	if exists(w.path("project/TAKEN")) {
		t.Error("the user's git obeyed the agent")
	}
}
