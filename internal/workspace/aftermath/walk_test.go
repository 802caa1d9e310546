package aftermath_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// walker is an agent that does whatever comes into its head, below the project.
type walker struct {
	world
	*rand.Rand
	done []string
}

// names are what it calls things: what git obeys, and a few others, so that
// names meet.
var names = []string{
	".git", ".git", ".git", "a", "b", "a/b", "n", "e", "HEAD", "objects", "refs", "refs/heads", "logs", "config", "config.worktree", "commondir", "gitdir",
	"hooks", "hooks/post-index-change", "hooks/reference-transaction", "modules", "modules/s", "worktrees", "worktrees/w", "info", "info/attributes",
	"objects/info", "objects/info/alternates", "rebase-merge", "rebase-merge/msgnum", "lfs", "remotes", "remotes/origin", "index", ".gitattributes",
}

// place is a path of one to four names.
func (w *walker) place() string {
	at := w.path("p")
	for range 1 + w.IntN(3) {
		at = filepath.Join(at, names[w.IntN(len(names))])
	}
	return at
}

// there is a path of something that is there, as often as not in a git folder.
func (w *walker) there() string {
	at := w.path("p")
	for range 1 + w.IntN(5) {
		entries, err := os.ReadDir(at)
		if err != nil || len(entries) == 0 {
			return at
		}
		at = filepath.Join(at, entries[w.IntN(len(entries))].Name())
	}
	return at
}

// step does one thing. That it may fail is part of it.
func (w *walker) step() {
	evil := "touch " + w.home + "/taken; false"
	what := ""
	switch w.IntN(14) {
	case 0:
		what = "mkdir " + w.place()
		os.MkdirAll(strings.TrimPrefix(what, "mkdir "), 0o755)
	case 1:
		from, to := w.there(), w.place()
		if from != w.path("p") {
			os.Rename(from, to)
		}
		what = "mv " + from + " " + to
	case 2:
		from, to := w.there(), w.there()
		if from != w.path("p") && to != w.path("p") {
			unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
		}
		what = "exchange " + from + " " + to
	case 3:
		from, to := w.there(), w.place()
		os.Link(from, to)
		what = "ln " + from + " " + to
	case 4:
		from, to := w.there(), w.place()
		os.Symlink(from, to)
		what = "ln -s " + from + " " + to
	case 5:
		at := w.there()
		os.Chmod(at, []os.FileMode{0, 0o311, 0o555, 0o755}[w.IntN(4)])
		what = "chmod " + at
	case 6, 7:
		to := w.place()
		os.CopyFS(to, os.DirFS(w.path("evil")))
		what = "cp -r evil " + to
	case 8:
		to := w.place()
		os.CopyFS(to, os.DirFS(w.path("evil/.git")))
		what = "cp -r evil/.git " + to
	case 9:
		to := w.place()
		os.MkdirAll(filepath.Dir(to), 0o755)
		os.WriteFile(to, []byte("gitdir: "+w.there()+"\n"), 0o644)
		what = "a .git file at " + to
	case 10:
		to := filepath.Join(w.there(), "commondir")
		os.WriteFile(to, []byte(w.there()+"\n"), 0o644)
		what = to
	case 11:
		to := filepath.Join(w.there(), "config")
		os.WriteFile(to, []byte("[core]\n\tfsmonitor = "+strconv.Quote(evil)+"\n\trepositoryformatversion = 0\n[alias]\n\tst = "+strconv.Quote("!"+evil)+"\n"), 0o644)
		what = "an evil " + to
	case 12:
		to := w.place()
		os.WriteFile(to, []byte("#!/bin/sh\n"+evil+"\n"), 0o755)
		what = "a hook at " + to
	case 13:
		at := w.there()
		if at != w.path("p") {
			os.RemoveAll(at)
		}
		what = "rm " + at
	}
	w.done = append(w.done, what)
}

// wantNothingRuns has the user's git look at every folder where git finds
// anything to obey.
func (w *walker) wantNothingRuns(seed int) {
	w.t.Helper()
	exec.Command("chmod", "-R", "u+rwX", w.path("p")).Run()
	os.Remove(w.path("taken"))
	folders := map[string]bool{w.path("p"): true}
	filepath.WalkDir(w.path("p"), func(at string, d fs.DirEntry, err error) error {
		if err == nil && (d.Name() == ".git" || d.Name() == "HEAD") {
			folders[filepath.Dir(at)] = true
		}
		return nil
	})
	list := slices.Sorted(maps.Keys(folders))
	w.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	const most = 30 // each costs two runs of git
	for _, dir := range list[:min(len(list), most)] {
		for _, words := range [][]string{{"status"}, {"st"}} {
			cmd := exec.Command("timeout", append([]string{"10", "git", "-C", dir}, words...)...)
			cmd.Env = []string{
				"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true", "GIT_CEILING_DIRECTORIES=" + w.home,
				"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x",
			}
			out, _ := cmd.CombinedOutput()
			if w.taken() {
				tail := w.done[max(0, len(w.done)-40):]
				w.t.Fatalf("seed %d: git %s in %s runs what was planted\n%s\n%s", seed, words[0], dir, out, strings.Join(tail, "\n"))
			}
		}
	}
}

// again begins a second session, if what the first one left lets it.
func (w *walker) again() (*aftermath.Session, error) {
	p, err := project.Open(project.Request{Dir: w.path("p"), Home: w.home, UID: os.Getuid(), Memory: aftermath.NewMemory(w.path(".claudebox"))})
	if err != nil {
		return nil, err
	}
	s, err := aftermath.Begin(w.path(".claudebox"), p, aftermath.Agent{Conversations: []string{w.path("conversations")}})
	if err == nil {
		s.Follow()
	}
	return s, err
}

// Whatever an agent does, the user's git runs nothing of it afterwards.
func TestARandomWalk(t *testing.T) {
	if os.Getenv("CLAUDEBOX_LONG") == "" {
		t.Skip("NOT RUN: takes minutes; CLAUDEBOX_LONG=1 runs it")
	}
	const seeds, steps = 50, 500
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := &walker{world: newWorld(t), Rand: rand.New(rand.NewPCG(uint64(seed), 1))}
			t.Cleanup(func() { exec.Command("chmod", "-R", "u+rwX", w.home).Run() })
			w.sh(`export GIT_AUTHOR_DATE=@1000000000 GIT_COMMITTER_DATE=@1000000000 # the same objects each time
				git init -q; git commit -qm x --allow-empty; git init -q n; git -C n commit -qm x --allow-empty; git init -q --bare b.git; mkdir a
				git init -q ../evil; git -C ../evil commit -qm x --allow-empty; git -C ../evil config core.fsmonitor "$EVIL"; git -C ../evil config alias.st "!$EVIL"`)
			s := w.begin()
			for range steps {
				w.step()
			}
			if seed%2 == 0 {
				s.End()
			} else {
				s.Kill()
				aftermath.Sweep(w.path(".claudebox"))
			}
			w.wantNothingRuns(seed)
			if seed%3 == 0 { // what was judged is the start of the next session
				s, err := w.again()
				if err != nil {
					t.Log("a launch is refused: " + err.Error())
					return
				}
				for range steps / 5 {
					w.step()
				}
				s.End()
				w.wantNothingRuns(seed)
			}
		})
	}
}
