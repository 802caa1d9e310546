//go:build lab

package sandbox_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// calls are what a hand-over and an end ask of the kernel, and faults are how it refuses, or that the process dies then.
var (
	calls = []string{
		"openat", "openat2", "renameat", "renameat2", "unlinkat", "mkdirat", "linkat", "symlinkat", "readlinkat", "write", "pwrite64", "pread64",
		"fsync", "fchmod", "fchmodat", "newfstatat", "statx", "getdents64", "flock", "ftruncate", "execve", "clone3", "pipe2", "mount", "dup3",
	}
	faults = []string{
		"error=ENOSPC", "error=EIO", "error=EDQUOT", "error=ENOMEM", "error=EMFILE", "error=ENAMETOOLONG", "error=EMLINK", "error=EACCES", "signal=KILL",
	}
)

// fault names one to try alone: CLAUDEBOX_FAULT=inject=read:error=EIO:when=3.
var fault = os.Getenv("CLAUDEBOX_FAULT")

// At any moment after the agent began, in claudebox and in each program of its, one call of a kind fails. Then nothing
// of the agent's runs; and the next launch ends it: nothing of either side is lost.
func TestACallFailsInEachProgramOfAnEnd(t *testing.T) {
	some := trial.Count(4, 300)
	for range some {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 1))
		inject := fmt.Sprintf("inject=%s:%s:when=%d", calls[rnd.IntN(len(calls))], faults[rnd.IntN(len(faults))], 1+rnd.IntN(1<<rnd.IntN(7)))
		if fault != "" {
			inject = fault
		}
		t.Run(strings.NewReplacer("=", "_", ":", "_").Replace(inject), func(t *testing.T) {
			failsOnce(t, inject)
		})
	}
}

// failsOnce is a session in which a call fails from the time on when the agent's first commit has crossed.
func failsOnce(t *testing.T, inject string) {
	const agent = `git commit -qm early --allow-empty; touch started; until [ -e go ]; do sleep 0.02; done
		echo x >file; git add file; git commit -qm late; touch committed; echo more: >>Makefile
		plant() { git init -q $1; git -C $1 commit -qm one --allow-empty; git -C $1 config core.fsmonitor "touch $PWD/TAKEN; false"; }
		plant sub; touch planted; mkdir .vscode node_modules; echo {} >.vscode/tasks.json; plant node_modules/left; git init -q --bare bare; git -C bare config core.fsmonitor "touch $PWD/TAKEN"`
	const safe = `git status; for d in $here; do git -C $d status || :; done; [ ! -e TAKEN ]`
	w := newWorld(t)
	w.repository(t)
	w.write(t, ".gitconfig", identity)
	w.plain(t, `echo all: >Makefile; git add .; git commit -qm first; touch .git/info/exclude; printf 'started\ngo\ncommitted\nplanted\n' >>.git/info/exclude`)
	cmd := w.claudebox("shell", "--yes", "--", "bash", "-euc", agent)
	ended := beside(t, cmd)
	must.Appear(t, w.path("project/started"))
	must.Appear(t, w.path("project/.git/refs/heads/main"))
	strace := exec.Command("strace", "-f", "-o", os.DevNull, "-e", inject, "-p", fmt.Sprint(cmd.Process.Pid))
	told, err := strace.StderrPipe()
	must.Do(t, err)
	must.Do(t, strace.Start())
	if first := bufio.NewScanner(told); !first.Scan() || !strings.Contains(first.Text(), "attached") {
		t.Fatalf("strace: %s", first.Text())
	}
	w.write(t, "project/go", "")
	got := <-ended
	_ = strace.Process.Kill()
	_ = strace.Wait()
	t.Logf("status %d\n%s", got.status, got.stderr)
	w.plain(t, `git commit -qm "the user's" --allow-empty 2>&1 || { rm -f .git/*.lock; git commit -qm "the user's" --allow-empty; }`)
	here := "here=sub; "
	if got.status != 0 { // claudebox was killed, perhaps before it held that back: the next launch looks after it
		here = "here=; "
	}
	w.plain(t, here+safe)
	next := run(t, w.claudebox("shell", "--yes", "--", "true"))
	t.Logf("the next launch: status %d\n%s", next.status, next.stderr)
	w.plain(t, "here='sub node_modules/left bare'; "+safe)
	left := w.plain(t, `git log --format=%s --all; git fsck --strict --no-dangling 2>&1; ls .git | grep lock || :; git -C sub log --format=sub-%s || :`)
	for want, made := range map[string]string{"early": "started", "late": "committed", "the user's": "Makefile", "sub-one": "planted"} {
		told := got.stderr + next.stderr
		isHeld := want == "sub-one" && (strings.Contains(told, "held back  sub/.git") || strings.Contains(told, "taken out  sub/.git"))
		if exists(w.path("project/"+made)) && !strings.Contains(left, want) && !isHeld {
			t.Errorf("%s: there is no %s: %s", inject, want, left)
		}
	}
	if next.status != 0 || strings.Contains(left, "lock") {
		t.Errorf("%s: the next launch: status %d; %s", inject, next.status, left)
	}
}
