package aftermath_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/workspace/aftermath"
	"claudebox/internal/workspace/project"
)

// Whatever an agent does, the user's git runs nothing of it afterwards, and
// what was hidden once is hidden in every later session.
//
// A walk is several sessions, each begun on what the one before has left. In
// every second walk the agent meets the project's mounts, as the kernel would
// have it; only there can a secret be hidden. In the others they are no
// hindrance, as after renames by the host.
//
// Promise: no secret of the project.
func TestARandomWalk(t *testing.T) {
	seeds, sessions, steps := 16, 2, 250 // of each session
	if os.Getenv("CLAUDEBOX_LONG") != "" {
		seeds, sessions, steps = 200, 10, 1000
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			w := newWalker(t, rnd, seed%2 == 1)
			for n := range sessions {
				if err := w.session(n, steps); err != nil {
					t.Log("a launch is refused: " + err.Error())
					w = newWalker(t, rnd, w.held)
				}
			}
		})
	}
}

// newWalker makes the user's project: a repository with others in it, and files
// that are nobody's business.
func newWalker(t *testing.T, rnd *rand.Rand, held bool) *walker {
	const memory = "/dev/shm" // ten times as fast as a disk
	dir, err := os.MkdirTemp(memory, "claudebox-walk")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { exec.Command("chmod", "-R", "u+rwX", dir).Run(); os.RemoveAll(dir) })
	w := &walker{world: world{t: t, home: dir}, Rand: rnd, held: held}
	must.Do(t, os.Mkdir(w.path(".claudebox"), 0o700), os.Mkdir(w.path("p"), 0o755))
	w.sh(`export GIT_AUTHOR_DATE=@1000000000 GIT_COMMITTER_DATE=@1000000000 GIT_TEMPLATE_DIR= # the same objects each time
		git init -q; git commit -qm x --allow-empty; git init -q n; git -C n commit -qm x --allow-empty; git init -q --bare b.git; mkdir a
		mkdir ../i; cp .git/index ../i/0; git add n; cp .git/index ../i/1
		for f in .env a/.env; do git update-index --add --cacheinfo 100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,$f; done; cp .git/index ../i/2
		for d in a b a/b e; do git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),$d; done; cp .git/index ../i/3; cp ../i/0 .git/index`)
	for n := range 4 {
		content := must.Read(t, w.path(fmt.Sprintf("i/%d", n)))
		w.index = append(w.index, content)
	}
	evil := "touch " + w.path("taken") + "; false"
	w.evil, w.hook = evilConfig(evil), "#!/bin/sh\n"+evil+"\n"
	w.secrets = map[uint64]string{}
	for _, name := range []string{"p/.env", "p/a/.env", "p/n/.env", "p/n/sub/id_ed25519", "p/plain"} {
		w.write(name, "SECRET")
		info, err := os.Lstat(w.path(name))
		must.Do(t, err)
		w.secrets[info.Sys().(*syscall.Stat_t).Ino] = name
	}
	must.Do(t, os.Symlink("plain", w.path("p/.env.local")))
	return w
}

// session is one from its launch to its end. An error is a launch that is
// refused.
func (w *walker) session(n, steps int) (err error) {
	home := w.path(".claudebox")
	aftermath.Sweep(home, w.path("p"))
	w.given, err = w.opened("p")
	if err != nil {
		return err
	}
	w.wantHidden()
	s, err := aftermath.Begin(home, w.given, aftermath.Agent{Conversations: []string{w.path("conversations")}})
	if err != nil {
		return err
	}
	hold, err := w.given.Hold()
	if err != nil {
		s.End()
		return err
	}
	s.Follow()
	if n%3 == 1 {
		must.Do(w.t, s.SetBack(time.Hour))
	}
	for range steps {
		w.step()
	}
	var reports []aftermath.Report
	if n%2 == 0 {
		reports = append(reports, s.End())
		hold.Release()
	} else {
		s.Kill()
		hold.Release() // as the next launch does that holds them
		reports = aftermath.Sweep(home, w.path("p"))
	}
	for _, r := range reports {
		for _, failure := range r.Failures {
			w.done = append(w.done, "FAILURE: "+failure)
		}
	}
	if n%4 < 2 {
		exec.Command("chmod", "-R", "u+rwX", w.path("p")).Run()
	}
	w.wantNothingRuns()
	return nil
}

func (w *walker) opened(dir string) (project.Project, error) {
	return project.Open(project.Request{Dir: w.path(dir), Home: w.home, UID: os.Getuid(), Memory: aftermath.NewMemory(w.path(".claudebox"))})
}

// places are where the user's secrets lie, and the folders where git finds
// anything to obey.
func (w *walker) places() (secrets, folders []string) {
	found := map[string]bool{w.path("p"): true}
	filepath.WalkDir(w.path("p"), func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.Name() == ".git" || d.Name() == "HEAD" {
			found[filepath.Dir(at)] = true
		}
		if info, err := d.Info(); err == nil && w.secrets[info.Sys().(*syscall.Stat_t).Ino] != "" {
			secrets = append(secrets, at)
		}
		return nil
	})
	return secrets, slices.Sorted(maps.Keys(found))
}

// wantHidden looks for the secrets in what a launch would show, from the
// project and from a folder below it.
func (w *walker) wantHidden() {
	w.t.Helper()
	if !w.held {
		return
	}
	secrets, _ := w.places()
	for _, at := range secrets {
		below := filepath.Dir(at)
		for range w.IntN(3) {
			if below != w.path("p") {
				below = filepath.Dir(below)
			}
		}
		rel, _ := filepath.Rel(w.home, below)
		given, err := w.opened(rel)
		if err != nil {
			continue // nothing is shown
		}
		for _, p := range []project.Project{w.given, given} {
			if !slices.ContainsFunc(p.Mounts, func(m project.Mount) bool { return m.Mode == project.Hidden && isBelow(at, m.Path) }) {
				w.t.Fatalf("a launch in %s shows %s; indexes: %q\n%s", p.Path, at, p.Seen.All(), w.last())
			}
		}
	}
}

// wantNothingRuns has the user's git look at every folder where git finds
// anything to obey.
func (w *walker) wantNothingRuns() {
	w.t.Helper()
	_, folders := w.places()
	w.Shuffle(len(folders), func(a, b int) { folders[a], folders[b] = folders[b], folders[a] })
	const most = 20 // each costs two runs of git
	if dir, how, out := w.runs(folders[:min(len(folders), most)], 3*time.Minute); how != "" {
		w.t.Fatalf("git in %s %s\n%s\n%s", dir, how, out, w.last())
	}
}

// runs gives the first of folders in which git runs what was planted, or hangs for
// so long; how is empty where it does neither.
func (w *walker) runs(folders []string, patience time.Duration) (dir, how, said string) {
	os.Remove(w.path("taken"))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `n=0; for d; do echo "in $d"; cd "$d" && git st; test $((n += 1)) -gt 5 || git status; test ! -e ~/taken || exit; done; echo done`, "sh"}, folders...)...)
	cmd.Env = []string{
		"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true", "GIT_CEILING_DIRECTORIES=" + w.home,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // git as well as the shell
	cmd.WaitDelay = time.Second
	out, _ := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if at, is := strings.CutPrefix(line, "in "+w.home); is {
			dir = w.home + strings.TrimSuffix(at, "\n")
		}
	}
	switch {
	case w.taken():
		return dir, "runs what was planted", string(out)
	case ctx.Err() != nil || !strings.HasSuffix(string(out), "done\n"):
		return dir, "hangs, or the look at it ended before the last folder", string(out)
	}
	return "", "", ""
}

// TestTheWalkSeesGitHang keeps the walk honest, wherever git hangs.
func TestTheWalkSeesGitHang(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"p", "p/a", "p/n"} {
		w := newWalker(t, rand.New(rand.NewPCG(1, 1)), false)
		folders := []string{w.path("p"), w.path("p/a"), w.path("p/n")}
		if dir, how, said := w.runs(folders, time.Minute); how != "" {
			t.Fatalf("before: in %s it %s\n%s", dir, how, said)
		}
		w.sh("cd ../" + at + "; rm -rf .git; git init -q; rm .git/config; mkfifo .git/config")
		if dir, how, _ := w.runs(folders, 2*time.Second); dir != w.path(at) || !strings.HasPrefix(how, "hangs") {
			t.Errorf("git hangs in %s: said to be in %q, %q", at, dir, how)
		}
	}
}

// last is what was done last, and where all of it is kept.
func (w *walker) last() string {
	kept, _ := os.MkdirTemp("", "claudebox-walk")
	exec.Command("cp", "-a", w.home, kept).Run()
	return strings.Join(append(w.done[max(0, len(w.done)-60):], "kept: "+kept), "\n")
}
