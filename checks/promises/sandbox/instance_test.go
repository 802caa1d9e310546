//go:build lab

package sandbox_test

import (
	"bytes"
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

	"claudebox/checks/kit/must"
)

// awaited starts a session that says when it runs, and ends when its input
// does.
func (w *world) awaited(t *testing.T) (end func()) {
	t.Helper()
	cmd := w.session(`echo running; read -r _ || true`)
	in, err := cmd.StdinPipe()
	must.Do(t, err)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatal(err)
	}
	return func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestInstancesAreListedFoundAndPruned(t *testing.T) {
	w := newWorld(t)
	folder := strings.TrimSpace(succeed(t, w.claudebox("instance", "path")))
	if exists(folder) {
		t.Errorf("%s is there before the first session", folder)
	}
	end := w.awaited(t)
	id := filepath.Base(folder)
	list := succeed(t, w.claudebox("instance", "list"))
	if !exists(folder) || !strings.Contains(list, id) || !strings.Contains(list, "in use") || !strings.Contains(list, "~/project\n") {
		t.Errorf("%s is not in\n%s", folder, list)
	}
	if got := run(t, w.claudebox("instance", "prune", "--all", "--yes")); got.status != 0 || !strings.Contains(got.stderr, "nothing to remove") {
		t.Errorf("status %d: %s%s", got.status, got.stdout, got.stderr)
	}
	end()
	if list = succeed(t, w.claudebox("instance", "list")); !strings.Contains(list, "just now") {
		t.Errorf("got\n%s", list)
	}
	if got := run(t, w.claudebox("instance", "prune", "--yes")); !exists(folder) {
		t.Errorf("the project is there, and its instance is gone: %s", got.stdout)
	}
	moved := w.path("elsewhere")
	must.Do(t, os.Rename(w.project, moved))
	prune := w.claudebox("instance", "prune", "--yes")
	prune.Dir = moved
	if got := succeed(t, prune); !strings.HasPrefix(got, "removed 1 of 1, ") || exists(folder) {
		t.Errorf("got %q, there: %v", got, exists(folder))
	}
}

func TestThePathOfAnInstanceIsThatOfTheProfilesState(t *testing.T) {
	w := newWorld(t)
	for kind, want := range map[string]string{"project": "/[0-9a-f]{16}$", "shared": "/shared$", "host": "/[0-9a-f]{16}-host$"} {
		got := strings.TrimSpace(succeed(t, w.claudebox("instance", "path", "-P", w.profile(t, "state: "+kind))))
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("state %s: %s", kind, got)
		}
	}
	wantRefused(t, run(t, w.claudebox("instance", "path", "-P", w.profile(t, "state: ephemeral"))), "is made for each session")
}

func TestWorktreesShareAnInstanceAndItsPath(t *testing.T) {
	w := newWorld(t)
	w.repository(t)
	w.git(t, "project", "worktree", "add", "-q", "../other")
	of := func(dir string) string {
		cmd := w.claudebox("instance", "path")
		cmd.Dir = w.path(dir)
		return succeed(t, cmd)
	}
	wantEqual(t, of("other"), of("project"))
}

// tree lists all below a folder with size and mode, but for what only saves
// time.
func tree(t *testing.T, folder string) string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "plan-cache" || d.Name() == ".cache" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintln(&b, name, info.Mode(), info.Size())
		}
		return err
	}))
	return b.String()
}

func TestAStateFolderThatCannotServeStopsTheLaunchAndLosesNothing(t *testing.T) {
	instance := func(w *world) string { return w.path(".claudebox/instances") }
	for name, tc := range map[string]struct {
		break_       func(t *testing.T, w *world)
		want, remedy string
	}{
		"a file": {func(t *testing.T, w *world) {
			w.write(t, "afile", "mine\n")
			w.env["CLAUDEBOX_HOME"] = w.path("afile")
		}, "not a directory", "set CLAUDEBOX_HOME to a folder"},
		"below a file": {func(t *testing.T, w *world) {
			w.write(t, "afile", "mine\n")
			w.env["CLAUDEBOX_HOME"] = w.path("afile/home")
		}, "not a directory", "set CLAUDEBOX_HOME to a folder"},
		"in no folder":   {func(t *testing.T, w *world) { w.env["CLAUDEBOX_HOME"] = w.path("a/b/c") }, "no such file or directory", "make the folder that"},
		"another user's": {func(t *testing.T, w *world) { w.env["CLAUDEBOX_HOME"] = "/usr/share" }, "must be yours", "set CLAUDEBOX_HOME"},
		"open to all": {func(t *testing.T, w *world) {
			w.inside(t, "true")
			must.Do(t, os.Chmod(w.path(".claudebox"), 0o777))
		}, "not writable by others", "chmod go-w"},
		"read-only": {func(t *testing.T, w *world) {
			must.Do(t, os.Mkdir(w.folder(t, "closed")+"/home", 0o500))
			w.env["CLAUDEBOX_HOME"] = w.path("closed/home")
		}, "permission denied", "writable for you"},
		"an instance that is a link": {func(t *testing.T, w *world) {
			w.inside(t, "true")
			id := only(t, instance(w))
			must.Do(t, os.Rename(filepath.Join(instance(w), id), w.path("moved")))
			must.Do(t, os.Symlink(w.path("moved"), filepath.Join(instance(w), id)))
		}, "not a real folder", "starts afresh"},
		"an agent's home that is a link": {func(t *testing.T, w *world) {
			w.inside(t, "true")
			home := filepath.Join(instance(w), only(t, instance(w)), ".claude")
			must.Do(t, os.Rename(home, w.path("moved")))
			must.Do(t, os.Symlink(w.path("moved"), home))
		}, "not a real folder", "starts afresh"},
		"all instances behind a link": {func(t *testing.T, w *world) {
			w.inside(t, "true")
			must.Do(t, os.Rename(instance(w), w.path("moved")))
			must.Do(t, os.Symlink(w.path("moved"), instance(w)))
		}, "not a real folder", "starts afresh"},
		"an instance that is a file": {func(t *testing.T, w *world) {
			w.inside(t, "true")
			at := filepath.Join(instance(w), only(t, instance(w)))
			must.Do(t, os.Rename(at, w.path("moved")))
			w.write(t, at, "x")
		}, "not a real folder", "starts afresh"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.break_(t, w)
			before := tree(t, w.home)
			got := run(t, w.session("echo started"))
			wantRefused(t, got, tc.want)
			if !strings.Contains(got.stderr, tc.remedy) {
				t.Errorf("the remedy lacks %q:\n%s", tc.remedy, got.stderr)
			}
			wantEqual(t, tree(t, w.home), before)
		})
	}
}

// only is the one name in a folder.
func only(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must.Do(t, err)
	if len(entries) != 1 {
		t.Fatalf("%s holds %v", folder, entries)
	}
	return entries[0].Name()
}

// Launches of a project that has no state yet.
func TestFirstLaunchesAtOnceShareOneWholeInstance(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			if got := run(t, w.session("cat ~/.claude/.claude.json >/dev/null; echo mark >>~/.cache/marks")); got.status != 0 || got.stderr != "" {
				t.Errorf("status %d: %s", got.status, got.stderr)
			}
		})
	}
	group.Wait()
	at := filepath.Join(w.path(".claudebox/instances"), only(t, w.path(".claudebox/instances")))
	wantEqual(t, w.read(t, at+"/cache/marks"), strings.Repeat("mark\n", 6))
}

// A first launch that is killed at any moment leaves nothing that keeps the
// next from starting, and nothing half made.
func TestAKilledFirstLaunchLeavesNothingHalfMade(t *testing.T) {
	for moment := range 12 {
		w := newWorldHere(t)
		cmd := w.session("sleep 60")
		must.Do(t, cmd.Start())
		time.Sleep(time.Duration(moment) * 2 * time.Millisecond)
		must.Do(t, cmd.Process.Kill())
		_ = cmd.Wait()
		wantEqual(t, w.inside(t, "ls -A ~/.claude/CLAUDE.md"), w.path(".claude/CLAUDE.md")+"\n")
		only(t, w.path(".claudebox/instances"))
	}
}

// A disk of a few blocks, in a user and mount namespace of the test's own,
// with claudebox as an ordinary user in it.
func TestAFullDiskStopsTheLaunchAndLeavesNothing(t *testing.T) {
	w := newWorld(t)
	disk := w.folder(t, "disk")
	w.env["CLAUDEBOX_HOME"] = disk + "/home"
	call := w.session("echo started")
	script := fmt.Sprintf(`mount -t tmpfs -o nr_blocks=3,mode=700 full %q && cd . && `+
		`unshare --user --map-user=%d --map-group=%d -- "$@"; status=$?; find %q -mindepth 1; exit $status`, disk, os.Getuid(), os.Getgid(), disk)
	cmd := exec.Command("unshare", slices.Concat([]string{"--map-root-user", "--mount", "--", "bash", "-c", script, "bash"}, call.Args)...)
	cmd.Dir, cmd.Env = call.Dir, append(call.Env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	got := run(t, cmd)
	wantRefused(t, got, "no space left on device")
	if !strings.Contains(got.stderr, "free some space in "+disk) {
		t.Errorf("no remedy: %s", got.stderr)
	}
}

// Of D29: the launch says where the old history is, and what it says to do works, before a start and after one.
func TestAProjectThatWasMovedIsToldWhereItsHistoryIs(t *testing.T) {
	for name, began := range map[string]bool{"before a start there": false, "after one": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			at := w.project + "-moved"
			w.inside(t, "mkdir -p ~/.claude/projects/${PWD//[^a-zA-Z0-9]/-}; echo kept >~/.claude/projects/${PWD//[^a-zA-Z0-9]/-}/x.jsonl")
			must.Do(t, os.Rename(w.project, at))
			w.project = at
			got := run(t, w.claudebox("shell", "--dry-run", "--", "true"))
			_, rest, said := strings.Cut(oneLine(got.stdout+got.stderr), "`claudebox instance move ")
			if !said {
				t.Fatalf("nothing is said: %+v", got)
			}
			id, _, _ := strings.Cut(rest, "`")
			if began {
				succeedWarned(t, w.session("true"), "claudebox instance move "+id)
			}
			if got := succeed(t, w.claudebox("instance", "move", id)); !strings.Contains(got, " now") {
				t.Errorf("it says %q", got)
			}
			wantEqual(t, w.inside(t, "cat ~/.claude/projects/${PWD//[^a-zA-Z0-9]/-}/x.jsonl"), "kept\n")
		})
	}
}
