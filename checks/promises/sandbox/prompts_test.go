//go:build lab

package sandbox_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// outside are programs of the user's that work in the project all the time: bash's prompt in both forms, at the top and
// in a folder below, and a loop of git status. Each ends when "stop" is there.
const outside = `. /usr/lib/git-core/git-sh-prompt; export GIT_PS1_SHOWDIRTYSTATE=1 GIT_PS1_SHOWUNTRACKEDFILES=1 GIT_PS1_SHOWUPSTREAM=auto
	prompt() { cd "$1"; while [ ! -e "$OLDPWD/stop" ]; do __git_ps1; __git_ps1 "$ " " $ "; git -C "$OLDPWD" log -1 --oneline; done; }
	(prompt src) & (prompt .) & while [ ! -e stop ]; do git status; git diff; git stash list; done; wait`

// During many sessions prompts, a loop of git and an editor that opens what appears work in the project. What the agent
// plants in git folders of the user's runs never. What it makes anew is held back as fast as that can be done, and how
// often it ran all the same is said.
//
// Promise: nothing planted for your git.
func TestPromptsAndAnEditorWorkWhileManySessionsPlant(t *testing.T) {
	sessions := trial.Count(2, 50)
	const plant = `evil() { git -C "$1" config core.fsmonitor "touch $2; false"; git -C "$1" config core.pager "touch $2"; git -C "$1" config core.sshCommand "touch $2"
			git -C "$1" config filter.f.clean "touch $2; cat"; git -C "$1" config diff.external "touch $2"; mkdir -p "$1/.git/hooks" "$1/.git/info"
			for h in post-index-change post-checkout reference-transaction pre-commit; do printf '#!/bin/sh\ntouch %s || :\n' "$2" >"$1/.git/hooks/$h"; chmod +x "$1/.git/hooks/$h"; done; }
		evil . "$C/USERS"; echo '* filter=f' >.git/info/attributes; git worktree add -q .wt -b "b$RANDOM" 2>/dev/null || :
		git init -q there; evil there "$C/USERS"; git commit -qm plant --allow-empty
		for i in 1 2 3 4; do git init -q "new$i"; evil "new$i" "$C/HELD-$N-$i"; sleep 0.05; done
		git init -q src; evil src "$C/HELD-$N-5"; mkdir .vscode; echo {} >.vscode/tasks.json; sleep 0.3; git worktree remove --force .wt 2>/dev/null || :`
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	w.plain(t, `mkdir src; touch src/main.c; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),there; git add src; git commit -qm first; mkdir there
		echo stop >>.git/info/exclude; mkdir ../canary`) // which is not inside: a touch there is one outside
	prompts := exec.Command("bash", "-c", outside)
	prompts.Dir, prompts.Env = w.project, w.environment()
	must.Do(t, prompts.Start())
	editor := opens(t, w.project, w.environment())
	for n := range sessions {
		got := run(t, w.session("C="+w.path("canary")+"; N="+string(rune('a'+n/26))+string(rune('a'+n%26))+"; "+plant))
		if got.status != 0 {
			t.Errorf("status %d, %s", got.status, got.stderr)
		}
		w.plain(t, "git status; rm -rf new? src/.git .vscode; git commit -qm users --allow-empty 2>/dev/null || :")
	}
	w.write(t, "project/stop", "")
	_ = prompts.Wait()
	editor()
	ran, err := filepath.Glob(w.path("canary/HELD-*"))
	if err != nil || exists(w.path("canary/USERS")) {
		t.Error("git of the user's obeyed what the agent planted in a git folder of theirs")
	}
	t.Logf("of %d repositories that the agent made, the user's programs obeyed %d", 5*sessions, len(ran))
	if got := w.plain(t, "git fsck --strict --no-dangling 2>&1"); got != "" {
		t.Error(got)
	}
}

// opens is an editor: what appears in the project, or in a folder below, it opens at once, and asks git there. Then it
// is told to end.
func opens(t *testing.T, project string, env []string) (end func()) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	must.Do(t, err)
	folders := map[int32]string{}
	watch := func(dir string) {
		if wd, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR); err == nil {
			folders[int32(wd)] = dir
		}
	}
	ask := func(dir string) {
		git := exec.Command("git", "status")
		git.Dir, git.Env = dir, env
		_ = git.Run() // it may be gone again
	}
	watch(project)
	watch(project + "/src")
	ended := make(chan bool)
	go func() {
		defer close(ended)
		buffer := make([]byte, 1<<16)
		for !exists(project + "/stop") {
			n, err := unix.Read(fd, buffer)
			for event := buffer[:max(0, n)]; err == nil && len(event) >= unix.SizeofInotifyEvent; {
				wd, length := int32(binary.NativeEndian.Uint32(event)), int(binary.NativeEndian.Uint32(event[12:]))
				name := strings.TrimRight(string(event[16:16+length]), "\x00")
				event = event[16+length:]
				dir := folders[wd]
				if file, err := os.Open(filepath.Join(dir, name)); err == nil {
					file.Close()
				}
				watch(filepath.Join(dir, name))
				if name == ".git" {
					ask(dir)
				}
				ask(filepath.Join(dir, name))
			}
		}
	}()
	return func() {
		<-ended
		unix.Close(fd)
	}
}
