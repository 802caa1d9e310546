//go:build lab

package sandbox_test

import (
	"os/exec"
	"strings"
	"testing"
)

// daily is what people and agents do with git all day, step by step. Each has
// to succeed and say nothing on standard error.
var daily = []struct{ name, script string }{
	{"switch", "git switch -q feature; git switch -q main; git switch -q feature; git switch -q main"},
	{"checkout -b", "git checkout -q -b topic; echo t >>.envrc; git commit -qam topic; git checkout -q main"},
	{"stash", "echo s >>.envrc; echo s >>testdata/server.key; echo s >>.vscode/tasks.json; git stash -q; git stash pop -q; git checkout -q -- ."},
	{"rebase", "git switch -q feature; git rebase -q main; git switch -q main"},
	{"rebase -i", "git switch -q feature; GIT_SEQUENCE_EDITOR=true git rebase -qi main~1; git switch -q main"},
	{"merge", "git merge -q --no-edit feature; git diff --quiet HEAD"},
	{"cherry-pick", "git cherry-pick other >/dev/null"},
	{"bisect", "git bisect start HEAD HEAD~3 >/dev/null; git bisect good >/dev/null; git bisect reset >/dev/null 2>&1"},
	{"gc", "git gc -q; git fsck --no-progress --connectivity-only >/dev/null"},
	{"worktree add", "git worktree add -q .claude/worktrees/x; git -C .claude/worktrees/x commit -qm w --allow-empty; git worktree remove .claude/worktrees/x"},
	{"submodule update", "git submodule -q update --init; git -C lib log --oneline >/dev/null"},
	{"tag, reset, clean", "git tag v1; git reset -q --hard HEAD; touch junk; git clean -qfd; git rev-parse -q --verify v1 >/dev/null"},
	{"commit -a", "echo a >>.envrc; echo a >>testdata/server.key; git commit -qam all; git show --stat HEAD | grep -q server.key"},
	{"push", "git push -q origin main"},
	{"fetch", "git fetch -q origin"},
}

// busy makes a repository with all that could be in git's way: tracked files
// that the host executes or that look secret, a submodule, a remote.
func (w *world) busy(t *testing.T) (flags []string) {
	t.Helper()
	w.write(t, ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n[protocol \"file\"]\n\tallow = always\n")
	w.git(t, ".", "init", "-q", "--bare", "-b", "main", w.path("origin.git"))
	w.folder(t, "lib.git")
	w.git(t, "lib.git", "init", "-q", "-b", "main")
	w.git(t, "lib.git", "commit", "-qm", "lib", "--allow-empty")
	w.repository(t)
	for _, name := range []string{".envrc", ".vscode/tasks.json", "testdata/server.key", "Makefile"} {
		w.write(t, "project/"+name, "begin\n")
	}
	w.git(t, "project", "add", ".")
	w.git(t, "project", "commit", "-qm", "files")
	w.git(t, "project", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", w.path("lib.git"), "lib")
	w.git(t, "project", "commit", "-qm", "sub")
	w.git(t, "project", "remote", "add", "origin", w.path("origin.git"))
	for branch, file := range map[string]string{"feature": ".vscode/tasks.json", "other": "testdata/server.key"} {
		w.git(t, "project", "switch", "-qc", branch, "main")
		w.write(t, "project/"+file, "begin\n"+branch+"\n")
		w.git(t, "project", "commit", "-qam", branch)
	}
	w.git(t, "project", "switch", "-q", "main")
	w.write(t, "project/Makefile", "begin\nmain\n")
	w.git(t, "project", "commit", "-qam", "main")
	return []string{"--mount-rw", w.path("origin.git"), "--mount-ro", w.path("lib.git")}
}

func TestADayWithGit(t *testing.T) {
	w := newWorld(t)
	flags := w.busy(t)
	for _, step := range daily {
		got := run(t, w.session("set -e; "+step.script+"; git status --porcelain", flags...))
		if got.status != 0 || got.stdout != "" || strings.ReplaceAll(got.stderr, "Auto-merging", "") != "" {
			t.Errorf("%s: status %d\n%s%s", step.name, got.status, got.stdout, got.stderr)
		}
	}
	for name, want := range map[string]string{
		".envrc": "begin\na\n", ".vscode/tasks.json": "begin\nfeature\n", "testdata/server.key": "begin\nother\na\n", "Makefile": "begin\nmain\n",
	} {
		if got := w.read(t, "project/"+name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	w.git(t, "project", "fsck", "--strict")
	out, err := exec.Command("git", "-C", w.path("project"), "status", "--porcelain", "--ignored").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("left over: %v\n%s", err, out)
	}
}

// What is stopped by a conflict in one session is gone on with in the next.
func TestARebaseIsGoneOnWithInTheNextSession(t *testing.T) {
	w := newWorld(t)
	flags := w.busy(t)
	w.inside(t, "echo x >Makefile; git commit -qam x; git switch -qc conflict HEAD~1; echo y >Makefile; git commit -qam y; git rebase main >/dev/null 2>&1 || true; test -d .git/rebase-merge", flags...)
	w.inside(t, "echo both >Makefile; git add Makefile; GIT_EDITOR=true git rebase --continue >/dev/null 2>&1", flags...)
	wantEqual(t, w.inside(t, "cat Makefile; git status --porcelain; git log -2 --format=%s", flags...), "both\ny\nx\n")
}
