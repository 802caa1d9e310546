package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// branch measures what a session on a branch costs: its first start, with the checkout, against `git worktree add`, alone
// and ten at once, until the agent runs, and once more with the session's end; the later ones against a start in the
// user's folder; the first `git status` in the checkout; and the disk that it takes.
func (w *world) branch(out io.Writer, rounds int) error {
	for _, p := range []struct {
		name           string
		files, ignored int
		// all is also what takes many checkouts: with fewer files these cost what starts cost, and more fill the disk.
		all bool
	}{
		{"a small repository", 20, 0, false},
		{"5,000 files", 5_000, 0, true},
		{"50,000 files and 100,000 ignored", 50_000, 100_000, false},
	} {
		repo := filepath.Join(w.home, fmt.Sprint("branch-", p.files))
		if err := makeCommitted(repo, p.files, p.ignored); err != nil {
			return err
		}
		many, few := rounds, max(3, rounds/5)
		if p.files > 5_000 { // each takes its time and its room
			many, few = max(3, rounds/10), 3
		}
		later := w.onBranch(repo, func() string { return "again" })
		if _, err := once(later, whole); err != nil { // the checkout
			return err
		}
		time.Sleep(settled)
		first, tree := w.onBranch(repo, numbered("first-"), "date", "+%s%N"), w.worktree(repo)
		rows := []row{
			{"a later start on a branch", "a start there", many, whole, later, w.startIn(repo)},
			// Who wants to know what is not committed there asks git.
			{"a later start on a branch", "`git status`, and a start there", many, whole, later, w.lookAndStart(repo)},
			{"the first start on a branch, until the agent runs", "`git worktree add`", few, toAgent, first, tree},
			{"a first session of no work, with its end", "`git worktree add`", few, whole, first, tree},
		}
		if p.all {
			rows = append(rows, row{
				"ten first starts at once, until all agents run", "`git worktree add` ten times, one after another", few, toAgent,
				w.tenBranches(repo), w.tenWorktrees(repo),
			}, row{
				"the first `git status` on a branch", "in a new worktree", few, asSaid,
				w.onBranch(repo, numbered("status-"), "bash", "-euc", timed), w.statusOutside(repo),
			})
		}
		for _, r := range rows {
			times, err := takeTurnsBy(r.by, r.rounds, r.ours, r.other)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "| %s of %s | %s | %s %s | %.2f |\n", r.what, p.name, times[0], r.with, times[1],
				float64(times[0])/float64(times[1]))
		}
		if p.all {
			if err := w.diskOfBranches(out, p.name, repo); err != nil {
				return err
			}
		}
	}
	return nil
}

// row is what is measured, and what it is compared with.
type row struct {
	what, with  string
	rounds      int
	by          clock
	ours, other way
}

// numbered gives a new name at each call.
func numbered(prefix string) func() string {
	n := 0
	return func() string { n++; return fmt.Sprint(prefix, n) }
}

// onBranch is a launch on a branch; of a program in place of the agent, if there is one.
func (w *world) onBranch(repo string, name func() string, program ...string) way {
	return func() (*exec.Cmd, error) {
		words := []string{"-P", w.profile("plain", ""), "--yes", "--network", "full", "--branch", name()}
		if len(program) > 0 {
			words = slices.Concat([]string{"shell"}, words, []string{"--"}, program)
		}
		cmd, err := w.command(words...)()
		if err == nil {
			cmd.Dir = repo
		}
		return cmd, err
	}
}

// lookAndStart is what git says of a repository, and then a launch in it.
func (w *world) lookAndStart(repo string) way {
	start := w.startIn(repo)
	return func() (*exec.Cmd, error) {
		cmd, err := start()
		if err == nil {
			words := slices.Concat([]string{"-euc", `git status >/dev/null; exec "$@"`, "bash"}, cmd.Args)
			looking := exec.Command("bash", words...)
			looking.Dir, looking.Env, cmd = cmd.Dir, cmd.Env, looking
		}
		return cmd, err
	}
}

// worktree is a new worktree.
func (w *world) worktree(repo string) way {
	name := numbered("tree-")
	return func() (*exec.Cmd, error) {
		at := name()
		return exec.Command("bash", "-euc", `git -C "$1" worktree add -q -b "$2" "$3"; date +%s%N`, "bash",
			repo, at, w.treeOf(repo, at)), nil
	}
}

// treeOf is where a worktree lies.
func (w *world) treeOf(repo, name string) string {
	return filepath.Join(w.home, filepath.Base(repo)+"-"+name)
}

// tenBranches is ten launches at once, each on a new branch, whose agents work until all run.
func (w *world) tenBranches(repo string) way {
	return w.ten(repo, `said=$(mktemp -d)
mkfifo "$said/end" "$said/runs"
exec 3<>"$said/end" 4<>"$said/runs"
last=0
for n in {0..9}; do
	"$HOME/bin/claudebox" shell -P "$2" --yes --network full --branch "$1-$n" -- bash -c 'date +%s%N; cat' <"$said/end" 3>&- 4>&- >"$said/runs" &
	started+=($!)
done
for n in {0..9}; do
	read -r -t 300 runs <&4
	((runs < last)) || last=$runs
done
exec 3>&-
for one in "${started[@]}"; do wait "$one"; done
rm -r "$said"
echo "$last"`, w.profile("plain", ""))
}

// tenWorktrees is ten new worktrees, one after another.
func (w *world) tenWorktrees(repo string) way {
	return w.ten(repo, `for n in {0..9}; do git worktree add -q -b "tree-$1-$n" "$2-$1-$n"; done; date +%s%N`,
		w.treeOf(repo, "ten"))
}

// ten runs a script for ten names that begin with its first word.
func (w *world) ten(repo, script, word string) way {
	name := numbered("ten-")
	return func() (*exec.Cmd, error) {
		cmd := exec.Command("bash", "-euc", script, "bash", name(), word)
		cmd.Dir, cmd.Env = repo, append(os.Environ(), "HOME="+w.home)
		return cmd, nil
	}
}

// timed has a shell say how long a command takes.
const timed = "TIMEFORMAT=%R; time git status >/dev/null"

// statusOutside is the first one in a new worktree.
func (w *world) statusOutside(repo string) way {
	name := numbered("status-")
	return func() (*exec.Cmd, error) {
		at := w.treeOf(repo, name())
		cmd := exec.Command("bash", "-euc", timed)
		cmd.Dir = at
		return cmd, git(repo, "worktree", "add", "-q", at)
	}
}

// diskOfBranches compares the disk that the checkouts of a repository take with that of its worktrees: `du` of both, for
// each.
func (w *world) diskOfBranches(out io.Writer, name, repo string) error {
	script := `each() { echo $(($(du -sck "$@" | tail -1 | cut -f1) / $#)); }
last=$(ls -td .claudebox/branches/*/ | head -1)
chmod -R u+rwX "$last"
each "$last"*/; each "$1"-*`
	cmd := exec.Command("bash", "-euc", script, "bash", filepath.Base(repo))
	cmd.Dir = w.home
	said, err := cmd.Output()
	var ours, theirs int
	if err == nil {
		_, err = fmt.Sscan(string(said), &ours, &theirs)
	}
	if err != nil {
		return fmt.Errorf("disk of the branches: %w\n%s", err, said)
	}
	fmt.Fprintf(out, "| disk of a branch of %s | %d KiB | a worktree %d KiB | %.2f |\n", name, ours, theirs,
		float64(ours)/float64(theirs))
	return nil
}

// makeCommitted makes a repository whose files are committed, with a folder of ignored ones.
func makeCommitted(dir string, files, ignored int) error {
	if err := makeProject(dir, files, 0); err != nil {
		return err
	}
	for n := range files {
		name := fmt.Sprintf("%s/%d/%d/file-%d.go", dir, n/perFolder%50, n/perFolder, n)
		content := fmt.Appendf(nil, "package p\n\n// File%d is one of many.\ntype File%d struct{}\n", n, n)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return err
		}
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
