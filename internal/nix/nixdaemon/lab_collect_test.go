//go:build lab

package nixdaemon_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixdaemon"
)

// A whole collection comes at every step from an evaluation to the end of a
// session: what is kept is just what the package's documentation says.
func TestLabAWholeCollection(t *testing.T) {
	onOwn(t, func(t *testing.T, l lab) {
		s := &nixdaemon.Client{Socket: l.socket}
		defer s.Close()
		pinned, asked, later := addPath(t, l), addPath(t, l), addPath(t, l)
		if valid, err := s.Pin(t.Context(), []string{pinned}); err != nil || len(valid) != 1 {
			t.Fatalf("Pin = %q, %v", valid, err)
		}
		if _, err := s.QueryPathInfo(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		rooted, link := addPath(t, l), linkFor(t)
		must.Do(t, os.Symlink(rooted, link))
		must.Do(t, s.AddIndirectRoots(t.Context(), []string{link}))
		l.collects(t, "between resolving and the launch", map[string]bool{pinned: true, asked: false, rooted: true, later: false})
		built := build(t, l, s)
		l.collects(t, "during the session", map[string]bool{pinned: true, built["out"]: true, built["dev"]: true, rooted: true})

		must.Do(t, s.Close())
		eventually(t, func() error {
			l.must(t, "nix-store", "--gc")
			if valid, err := l.client(t, nixdaemon.Options{}).IsValidPath(t.Context(), pinned); valid || err != nil {
				return fmt.Errorf("%s is still there, %w", pinned, err)
			}
			return nil
		})
		l.collects(t, "after it", map[string]bool{built["dev"]: false, built["out"]: false, rooted: true})
		must.Do(t, os.Remove(link))
		l.collects(t, "after its link is gone", map[string]bool{rooted: false})
	})
}

// collects collects all garbage, and looks which paths it left.
func (l lab) collects(t *testing.T, when string, kept map[string]bool) {
	t.Helper()
	l.must(t, "nix-store", "--gc")
	valid, err := l.client(t, nixdaemon.Options{}).QueryValidPaths(t.Context(), slices.Collect(maps.Keys(kept)))
	must.Do(t, err)
	for path, want := range kept {
		if got := slices.Contains(valid, path); got != want {
			t.Errorf("%s: %s is there: %t, want %t", when, path, got, want)
		}
	}
}

// A collection in the middle of a build takes neither its inputs nor, when it
// is done, its outputs.
func TestLabACollectionDuringABuild(t *testing.T) {
	onOwn(t, func(t *testing.T, l lab) {
		begun := make(chan bool, 1)
		c := l.client(t, nixdaemon.Options{Log: func(e nixdaemon.Event) {
			if r, ok := e.(nixdaemon.Result); ok && r.Type == nixdaemon.BuildLogLine {
				select {
				case begun <- true:
				default:
				}
			}
		}})
		input, end := addPath(t, l), filepath.Join(t.TempDir(), "end")
		defer os.Remove(end)
		drv := instantiate(t, l, "echo begun; while ! [ -e "+end+" ]; do :; done; read line <$input; echo $line >$out; echo >$dev", "input = builtins.storePath "+input+";")
		done := make(chan bool)
		go func() {
			defer close(done)
			results, err := c.BuildPaths(t.Context(), []string{drv + "!dev,out"})
			if err != nil || results[0].Err() != nil {
				t.Error(err, results)
			}
		}()
		<-begun
		l.collects(t, "while it is built", map[string]bool{input: true, drv: true})
		must.Write(t, end, "")
		<-done
		outputs := l.outputs(t, drv)
		l.collects(t, "when it is built", map[string]bool{outputs["out"]: true, outputs["dev"]: true})
	})
}

// linkFor is the place for a link that the daemon's collector can follow.
func linkFor(t *testing.T) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "root")
	for dir := filepath.Dir(link); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		must.Do(t, os.Chmod(dir, 0o755))
	}
	return link
}

// A daemon that is killed takes its pins along, so the connection must not be
// taken for one that holds any.
func TestLabAKilledDaemonIsNoticed(t *testing.T) {
	onOwn(t, func(t *testing.T, l lab) {
		c := l.client(t, nixdaemon.Options{})
		if _, err := c.Pin(t.Context(), []string{invalid}); err != nil {
			t.Fatal(err)
		}
		building := l.client(t, nixdaemon.Options{})
		drv := instantiate(t, l, "while :; do :; done")
		failed := make(chan error, 1)
		go func() {
			_, err := building.BuildPaths(t.Context(), []string{drv + "!out"})
			failed <- err
		}()
		time.Sleep(100 * time.Millisecond)
		killWorkers(t, l)
		checkCause(t, <-failed, nixdaemon.ErrBroken, "")
		eventually(t, func() error {
			if c.Alive() == nil {
				return fmt.Errorf("the connection is taken for alive")
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := nixdaemon.Dial(ctx, l.socket, nixdaemon.Options{}); err == nil {
			t.Error("a dead daemon answers")
		}
	})
}

// killWorkers ends an own daemon and what it has forked: all processes that
// have its folder for their /nix.
func killWorkers(t *testing.T, l lab) {
	t.Helper()
	own, err := os.Stat(l.own.State)
	must.Do(t, err)
	l.own.Kill()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must.Do(t, err)
	for _, dir := range dirs {
		theirs, err := os.Stat(dir + "/root/nix")
		if err != nil || !os.SameFile(own, theirs) {
			continue
		}
		var pid int
		fmt.Sscan(filepath.Base(dir), &pid)
		if p, err := os.FindProcess(pid); err == nil && pid != os.Getpid() {
			p.Kill()
		}
	}
}

// A full disk is the daemon's to report; the connection outlives it.
func TestLabAFullDiskIsSaid(t *testing.T) {
	onRoots(t, func(t *testing.T, root string) {
		l := startDaemon(t, root, "--size", "20000000", "--tmpfs", "/nix/store")
		s := &nixdaemon.Client{Socket: l.socket}
		defer s.Close()
		drv := instantiate(t, l, "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do x=$x$x; done 2>/dev/null; while echo $x; do :; done >$out; exit 1")
		failed, err := s.Realise(t.Context(), []string{drv + "!out"})
		if why := failed[drv+"!out"]; err != nil || why == nil || !strings.Contains(why.Error(), "lack of free disk space") {
			t.Fatalf("Realise = %v, %v; want the lack of space", why, err)
		}
		if err := s.Alive(); err != nil {
			t.Errorf("the connection is lost: %v", err)
		}
	})
}

// Ten thousand paths are asked for in one round trip, in memory that grows
// with them only.
func TestLabTenThousandPathsTakeLittleMemory(t *testing.T) {
	paths := make([]string, 10_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/nix/store/%032d-claudebox-never-was", i)
	}
	onEach(t, func(t *testing.T, l lab) {
		c := l.client(t, nixdaemon.Options{})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if valid, err := c.QueryValidPaths(t.Context(), paths); err != nil || len(valid) != 0 {
			t.Errorf("QueryValidPaths = %d paths, %v", len(valid), err)
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 20<<20 {
			t.Errorf("it took %d MiB", grown>>20)
		}
	})
}

// What a cache has is fetched, with its progress, and what none has is said.
// Two daemons: one fills the cache, the other, whose store is empty, fetches.
func TestLabFetchesFromACache(t *testing.T) {
	onRoots(t, func(t *testing.T, root string) {
		cache, err := os.MkdirTemp("", "nix-cache-")
		must.Do(t, err)
		defer os.RemoveAll(cache)
		first := startDaemon(t, root)
		outputs := build(t, first, first.client(t, nixdaemon.Options{}))
		first.must(t, "nix", "--extra-experimental-features", "nix-command", "copy", "--to", "file://"+cache, outputs["dev"])

		second := startDaemon(t, root, "--setenv", "NIX_CONFIG", "substituters = file://"+cache+"\nrequire-sigs = false")
		var progress nixdaemon.Progress
		s := &nixdaemon.Client{Socket: second.socket, Options: nixdaemon.Options{Log: func(e nixdaemon.Event) { progress.Hear(e) }}}
		defer s.Close()
		failed, err := s.Realise(t.Context(), []string{outputs["dev"], invalid})
		if err != nil || len(failed) != 1 || failed[invalid] == nil {
			t.Fatalf("Realise = %v, %v; want only the invalid path", failed, err)
		}
		if progress.Fetched != 2 || progress.ToFetch != 2 || progress.ToDo == 0 {
			t.Errorf("the progress is %q, %+v; want two paths", progress.String(), progress)
		}
		second.collects(t, "while the connection is open", map[string]bool{outputs["dev"]: true, outputs["out"]: true})

		third := startDaemon(t, root, "--setenv", "NIX_CONFIG", "substituters = file://"+cache+"\nrequire-sigs = false").client(t, nixdaemon.Options{})
		missing, err := third.QueryMissing(t.Context(), []string{outputs["dev"]})
		if err != nil || len(missing.WillSubstitute) != 2 || missing.NARSize == 0 {
			t.Errorf("QueryMissing = %+v, %v; want two to fetch", missing, err)
		}
	})
}
