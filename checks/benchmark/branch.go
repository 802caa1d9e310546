package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// branch measures what a session on a branch costs: its first start, with the checkout, against `git worktree add`; the
// later ones against a start in the user's folder; and the disk that a checkout takes.
func (w *world) branch(out io.Writer, rounds int) error {
	for _, p := range []struct {
		name           string
		files, ignored int
	}{{"a small repository", 20, 0}, {"50,000 files and 100,000 ignored", 50_000, 100_000}} {
		dir := filepath.Join(w.home, fmt.Sprint("branch-", p.files))
		if err := makeCommitted(dir, p.files, p.ignored); err != nil {
			return err
		}
		many := rounds
		if p.files > 1000 {
			many = max(3, rounds/10)
		}
		plain, again := w.startIn(dir), w.onBranch(dir, func() string { return "again" })
		if _, err := once(again, whole); err != nil { // the checkout
			return err
		}
		time.Sleep(settled)
		times, err := takeTurns(many, again, plain)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| a later start on a branch of %s | %s | a start there %s | %.2f |\n", p.name, times[0], times[1],
			float64(times[0])/float64(times[1]))
		n := 0
		first := w.onBranch(dir, func() string { n++; return fmt.Sprint("first-", n) })
		m := 0
		worktree := func() (*exec.Cmd, error) {
			m++
			name := fmt.Sprint("tree-", m)
			return exec.Command("git", "-C", dir, "worktree", "add", "-q", "-b", name, filepath.Join(w.home, name+filepath.Base(dir))), nil
		}
		if times, err = takeTurns(max(3, many/5), first, worktree); err != nil {
			return err
		}
		fmt.Fprintf(out, "| the first start on a branch of %s | %s | `git worktree add` %s | %.2f |\n", p.name, times[0],
			times[1], float64(times[0])/float64(times[1]))
	}
	return nil
}

// onBranch is a launch on a branch.
func (w *world) onBranch(dir string, name func() string) way {
	return func() (*exec.Cmd, error) {
		cmd, err := w.command("-P", w.profile("plain", ""), "--yes", "--network", "full", "--branch", name())()
		if err == nil {
			cmd.Dir = dir
		}
		return cmd, err
	}
}

// makeCommitted makes a repository whose files are committed, with a folder of ignored ones.
func makeCommitted(dir string, files, ignored int) error {
	if err := makeProject(dir, files, 0); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("node_modules/\n"), 0o600); err != nil {
		return err
	}
	for n := range ignored {
		name := fmt.Sprintf("%s/node_modules/%d/file-%d.js", dir, n/50, n)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
			return err
		}
	}
	return errors.Join(git(dir, "add", ".gitignore", "[0-9]*"),
		git(dir, "-c", "user.name=u", "-c", "user.email=u@u", "commit", "-qm", "all"))
}
