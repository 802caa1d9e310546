//go:build lab

package travel_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"claudebox/checks/kit/debian"
	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
)

// onEach runs a test with each daemon that the lab has.
func onEach(t *testing.T, test func(t *testing.T, root string, d debian.Options)) {
	roots := debian.Roots(t)
	for name, root := range roots {
		t.Run("the daemon of "+name, func(t *testing.T) { test(t, root, debian.Options{}) })
	}
	for _, root := range roots {
		t.Run("this machine's daemon", func(t *testing.T) { test(t, root, thisMachines(t)) })
		break
	}
}

// A dry run fetches nothing, and says what a launch would.
func TestALookAtAPlanFetchesNothing(t *testing.T) {
	m := newMaker(t, profile)
	conf := "substituters = file://" + m.path("cache") + "\ntrusted-public-keys = " + m.push(t, "cache", true) + "\n"
	c := newColleague(t, debian.Options{}, anyRoot(t), conf, m)
	text, status := outcome(t, c.claudebox("shell", "--plan", m.path("plan.json"), "--dry-run", "--", "hello"))
	expect.Contains(t, text, "not in the store yet", "hello")
	if names := c.has(t); status != 0 || len(names) > 0 {
		t.Errorf("exit status %d, store %q\n%s", status, names, text)
	}
}

func anyRoot(t *testing.T) string {
	t.Helper()
	for _, root := range debian.Roots(t) {
		return root
	}
	t.Skip("no release of another Debian is here")
	return ""
}

// A cache anybody may write to has nothing that a daemon believes.
func TestACacheWithoutSignaturesIsRefused(t *testing.T) {
	m := newMaker(t, profile)
	m.push(t, "cache", false)
	onEach(t, func(t *testing.T, root string, d debian.Options) {
		c := newColleague(t, d, root, "substituters = file://"+m.path("cache")+"\n", m)
		text, status := outcome(t, c.claudebox("shell", "--plan", m.path("plan.json"), "--yes", "--", "hello"))
		if status != 125 {
			t.Errorf("exit status %d", status)
		}
		expect.Contains(t, text, "store paths cannot be had", "remedy: have the cache's paths signed", "trusted-public-keys")
		if names := c.has(t); len(names) > 0 {
			t.Errorf("its store has %q", names)
		}
	})
}

// All that cannot be had is told at once.
func TestWhatNoCacheHasIsListed(t *testing.T) {
	m := newMaker(t, profile)
	onEach(t, func(t *testing.T, root string, d debian.Options) {
		c := newColleague(t, d, root, "substituters =\n", m)
		text, status := outcome(t, c.claudebox("shell", "--plan", m.path("plan.json"), "--yes", "--", "hello"))
		if status != 125 {
			t.Errorf("exit status %d", status)
		}
		expect.Contains(t, text, m.paths(t)...)
		expect.Contains(t, text, "remedy: ", "nix copy --to", "substituters")
	})
}

// TestAPlanIsLaunchedFromAStoreThatHasNoneOfIt by one command, which may be
// interrupted and repeated: one file of the cache is a pipe that nobody writes
// to, where the fetch waits.
func TestAPlanIsLaunchedFromAStoreThatHasNoneOfIt(t *testing.T) {
	m := newMaker(t, profile)
	conf := "substituters = file://" + m.path("cache") + "\ntrusted-public-keys = " + m.push(t, "cache", true) + "\n"
	onEach(t, func(t *testing.T, root string, d debian.Options) {
		archive := largest(t, m.path("cache/nar"))
		must.Do(t, os.Rename(archive, archive+".kept"))
		must.Do(t, syscall.Mkfifo(archive, 0o644))
		c := newColleague(t, d, root, conf, m)
		if names := c.has(t); len(names) > 0 {
			t.Fatalf("its store has %q", names)
		}
		launch := []string{"shell", "--plan", m.path("plan.json"), "--yes", "--", "hello"}
		cmd := c.claudebox(launch...)
		out, err := cmd.StderrPipe()
		if err == nil {
			err = cmd.Start()
		}
		must.Do(t, err)
		said := bufio.NewReader(out)
		if line, err := said.ReadString('\n'); err != nil || !strings.Contains(line, "to be fetched") {
			t.Errorf("it says %q, %v", line, err)
		}
		interrupt(t, cmd.Process.Pid)
		if err := cmd.Wait(); err == nil {
			t.Error("an interrupted fetch succeeds")
		}
		restore(t, archive)
		text, status := outcome(t, c.claudebox(launch...))
		if status != 0 {
			t.Errorf("repeated: exit status %d", status)
		}
		expect.Contains(t, text, "Hello, world!", "store paths are to be fetched", "MiB")
		text, status = outcome(t, c.claudebox(launch...))
		if status != 0 || strings.Contains(text, "to be fetched") {
			t.Errorf("with all that it needs: exit status %d\n%s", status, text)
		}
	})
}

// interrupt sends SIGINT to what bwrap has started.
func interrupt(t *testing.T, bwrap int) {
	t.Helper()
	for _, child := range children(t, bwrap) {
		if err := syscall.Kill(child, syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}
}

// restore puts the file back, and lets go of who still waits for the pipe.
func restore(t *testing.T, archive string) {
	t.Helper()
	pipe, err := os.OpenFile(archive, os.O_RDWR, 0)
	if err == nil {
		err = os.Rename(archive+".kept", archive)
	}
	must.Do(t, err)
	pipe.Close()
}

func largest(t *testing.T, dir string) (path string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	must.Do(t, err)
	var most int64
	for _, f := range files {
		if info, err := f.Info(); err == nil && info.Size() > most {
			path, most = filepath.Join(dir, f.Name()), info.Size()
		}
	}
	return path
}
