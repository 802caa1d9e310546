//go:build lab

package nixdaemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/nixdaemon"
)

// A path is kept while the connection that pinned it is open. Deleting one
// path asks the garbage collector the same question as a whole run.
func TestLabPinsLastAsLongAsTheConnection(t *testing.T) { onEach(t, labPinsLastAsLongAsTheConnection) }

func labPinsLastAsLongAsTheConnection(t *testing.T, l lab) {
	for name, pin := range map[string]func(*nixdaemon.Client) string{
		"a pinned path": func(s *nixdaemon.Client) string {
			path := addPath(t, l)
			if valid, err := s.Pin(t.Context(), []string{path}); err != nil || len(valid) != 1 {
				t.Fatalf("Pin = %q, %v", valid, err)
			}
			return path
		},
		"what was built": func(s *nixdaemon.Client) string {
			return build(t, l, s)["dev"]
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &nixdaemon.Client{Socket: l.socket}
			defer s.Close()
			path := pin(s)
			if out, err := l.nix(t, "nix-store", "--delete", path); err == nil {
				t.Fatalf("a pinned path was deleted: %s", out)
			}
			must.Do(t, s.Close())
			eventually(t, func() error { _, err := l.nix(t, "nix-store", "--delete", path); return err })
		})
	}
}

// eventually tries until the daemon's worker has noticed our end.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for range 50 {
		if err = try(); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error(err)
}

func TestLabIndirectRoot(t *testing.T) { onEach(t, labIndirectRoot) }

func labIndirectRoot(t *testing.T, l lab) {
	c := l.client(t, nixdaemon.Options{})
	path, link := addPath(t, l), linkFor(t)
	must.Do(t, c.AddIndirectRoots(t.Context(), []string{link}))
	must.Do(t, os.Symlink(path, link))
	if roots := l.must(t, "nix-store", "-q", "--roots", path); !strings.Contains(roots, link) {
		t.Errorf("its roots are %q; want %s among them", roots, link)
	}
	if _, err := l.nix(t, "nix-store", "--delete", path); err == nil {
		t.Error("a rooted path was deleted")
	}
	must.Do(t, os.Remove(link))
	if _, err := l.nix(t, "nix-store", "--delete", path); err != nil {
		t.Error(err)
	}
}

// When the builder is dead the lock on its outputs is free, and another
// connection gets to build. The builder speaks from time to time: 2.34.8
// misses the end of a client in about one of six silent builds, when the end
// comes just before it waits for output.
func TestLabCancelKillsTheBuilder(t *testing.T) { onEach(t, labCancelKillsTheBuilder) }

func labCancelKillsTheBuilder(t *testing.T, l lab) {
	script := "i=0; while :; do i=$((i+1)); [ $((i % 50000)) != 1 ] || echo $i; done"
	target := []string{instantiate(t, l, script) + "!out"}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		started := false
		c := l.client(t, nixdaemon.Options{Log: func(e nixdaemon.Event) {
			if r, ok := e.(nixdaemon.Result); ok && r.Type == nixdaemon.BuildLogLine {
				started = true
				cancel()
			}
		}})
		if _, err := c.BuildPaths(ctx, target); !errors.Is(err, context.Canceled) || !started {
			t.Fatalf("BuildPaths = %v, started %t; want a build, cancelled", err, started)
		}
		cancel()
	}
}

// The daemon's backlog is five connections up to Nix 2.8.
func TestLabTwoHundredAtOnce(t *testing.T) { onEach(t, labTwoHundredAtOnce) }

func labTwoHundredAtOnce(t *testing.T, l lab) {
	paths := make([]string, 20)
	for i := range paths {
		paths[i] = fmt.Sprintf("/nix/store/%032d-claudebox-never-was", i)
	}
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			s := &nixdaemon.Client{Socket: l.socket}
			defer s.Close()
			if valid, err := s.Pin(t.Context(), paths); err != nil || len(valid) != 0 {
				t.Errorf("Pin = %q, %v; want none, nil", valid, err)
			}
		})
	}
	all.Wait()
}

// A warm resolution of twenty packages, over a connection of its own.
func BenchmarkLabPin20(b *testing.B) {
	paths := make([]string, 20)
	for i := range paths {
		paths[i] = fmt.Sprintf("/nix/store/%032d-claudebox-never-was", i)
	}
	for b.Loop() {
		s := &nixdaemon.Client{Socket: labSocket(b)}
		if _, err := s.Pin(b.Context(), paths); err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func BenchmarkLabValid10000(b *testing.B) {
	paths := make([]string, 10_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/nix/store/%032d-claudebox-never-was", i)
	}
	c := lab{socket: labSocket(b)}.client(b, nixdaemon.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.QueryValidPaths(b.Context(), paths); err != nil {
			b.Fatal(err)
		}
	}
}
