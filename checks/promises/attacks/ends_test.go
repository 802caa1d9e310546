//go:build lab

package attacks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// While a session ends, what its agent made becomes the user's. The agent of a session that begins meanwhile would lead
// claudebox to another repository of theirs, by a link in the place of one that is held back, and write in the git
// folders that have just become theirs: so it begins when that is over.
//
// Promise: no secret place.
// Promise: nothing planted for your git.
func TestAnAgentBeginsWhileAnotherSessionEnds(t *testing.T) {
	w := newWorld(t)
	w.git("", "init", "-q", "private")
	w.git("private", "commit", "-q", "--allow-empty", "-m", canary)
	const files = "cd ../private/.git; find . -type f -exec sha256sum {} + | sort"
	before := w.run(nil, "bash", "-c", files).stdout
	l := w.begin()
	// In one of them git waits, for a commit that is a pipe.
	l.sh(`for i in $(seq 8); do git init -q r$i; git -C r$i commit -q --allow-empty -m x; done
	commit=$(git -C r1 rev-parse HEAD); cd r1/.git/objects/${commit:0:2}; rm -f ${commit:2}; mkfifo ${commit:2}; cd "$OLDPWD"
	for i in $(seq 600); do [ -L r8/.git ] && [ -L r1/.git ] && break; sleep 0.05; done`)
	l.in.Close()
	aside := func() []string { links, _ := filepath.Glob(w.path("project/r*/.claudebox-link")); return links }
	must.Await(t, "the end is under way", func() bool { return len(aside()) > 0 })
	must.Do(t, l.cmd.Process.Signal(syscall.SIGSTOP))
	if len(aside()) == 0 {
		t.Fatal("the end was over before it could be stopped")
	}
	other := exec.Command(trial.Binary(t), "shell", "--yes", "--no-report", "--", "bash", "-uc", fmt.Sprintf(`
	for link in r*/.claudebox-link; do
	  at=$(readlink "$link") && rm -rf "$at.was" && mv -T "$at" "$at.was" && ln -s %s "$at"
	done
	touch began
	for i in $(seq 100); do
	  for r in r*; do
	    [ -L "$r/.git" ] || [ ! -d "$r/.git" ] || printf '[core]\n\tfsmonitor = "%s"\n' >>"$r/.git/config"
	  done
	  sleep 0.05
	done`, w.path("private/.git"), w.orders()))
	said, err := os.Create(w.path("said"))
	must.Do(t, err)
	defer said.Close()
	other.Dir, other.Env, other.Stdout, other.Stderr = w.project, w.env, said, said
	must.Do(t, other.Start())
	must.Await(t, "the other session begins, or waits", func() bool {
		return w.exists("project/began") || strings.Contains(w.read("said"), "ends just now: this one waits")
	})
	if w.exists("project/began") {
		t.Error("another session began while one ended")
	}
	for pipe := range strings.Lines(w.run(nil, "find", w.path(".claudebox/held"), "-type", "p").stdout) {
		pipe = strings.TrimSuffix(pipe, "\n")
		end, err := os.OpenFile(pipe, os.O_RDWR, 0) // who waits there goes on
		must.Do(t, err, os.Remove(pipe))
		end.Close()
	}
	must.Do(t, l.cmd.Process.Signal(syscall.SIGCONT))
	l.end()
	if err := other.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, w.read("said"))
	}
	if got := w.run(nil, "bash", "-c", files).stdout; got != before {
		t.Errorf("another repository of the user's was changed: %s", got)
	}
	const logs = "for r in r*; do git -C $r log --all --format=%s; git -C $r status; done 2>/dev/null"
	w.wantNoCanary(w.run(nil, "bash", "-c", logs))
	w.wantNotTaken()
}
