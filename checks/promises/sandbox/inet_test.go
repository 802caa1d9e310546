//go:build lab

package sandbox_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/nix/inside"
)

// kills is how often claudebox is killed; CLAUDEBOX_LAB_KILLS says otherwise.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CLAUDEBOX_LAB_KILLS")
	if text == "" {
		return 12
	}
	n, err := strconv.Atoi(text)
	must.Do(t, err)
	return n
}

// killAfter starts a claudebox in a session of its own, kills it after a while,
// and lists who is left of that session then.
func killAfter(t *testing.T, cmd *exec.Cmd, delay time.Duration) []process {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must.Do(t, cmd.Start())
	time.Sleep(delay)
	cmd.Process.Kill()
	cmd.Wait()
	return ofSession(t, cmd.Process.Pid)
}

// wantNobodyLeft waits until all of the session are gone.
func wantNobodyLeft(t *testing.T, cmd *exec.Cmd, delay time.Duration) {
	t.Helper()
	left := ofSession(t, cmd.Process.Pid)
	for end := time.Now().Add(patience); len(left) > 0 && time.Now().Before(end); left = ofSession(t, cmd.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
	if len(left) > 0 {
		t.Fatalf("killed after %v, it left %+v", delay, left)
	}
}

// Whoever kills claudebox, at whatever moment, ends the sandbox with it.
func TestAKilledClaudeboxLeavesNothingBehind(t *testing.T) {
	w := newWorld(t)
	profile := w.profile(t, "agent: {command: [sleep, '1000']}")
	launch := func() *exec.Cmd { return w.claudebox("--yes", "--no-report", "--profile", profile) }
	killAfter(t, launch(), time.Second) // makes what later ones find
	for range 4 * kills(t) {
		cmd, delay := launch(), time.Duration(rand.Int64N(int64(15*time.Millisecond)))
		killAfter(t, cmd, delay)
		wantNobodyLeft(t, cmd, delay)
	}
}

// Whoever kills claudebox, at whatever moment, ends the sandbox and its
// network with it: their helper sees its end.
func TestAKilledClaudeboxLeavesNoNetworkBehind(t *testing.T) {
	w := newWorld(t)
	for range kills(t) {
		delay := time.Duration(rand.Int64N(int64(90 * time.Millisecond)))
		cmd := w.claudebox("shell", "--yes", "--no-report", "--network", "inet", "--", "sleep", "1000")
		killAfter(t, cmd, delay)
		wantNobodyLeft(t, cmd, delay)
	}
	succeed(t, w.session("true")) // it removes what they left
	err := filepath.WalkDir(w.home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil && (strings.Contains(path, "/.nix-trial-") || strings.HasSuffix(path, "/nix/main/work/work")) {
			return nil // folders of overlays, which the kernel closed
		}
		own := strings.HasSuffix(path, "/nix/main/"+inside.Socket) // the next session makes it anew
		if err == nil && !own && entry.Type()&(fs.ModeSocket|fs.ModeNamedPipe) != 0 {
			t.Errorf("it left %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

type process struct {
	pid       int
	name      string
	condemned bool // it is ending, or cannot but end: SIGKILL is pending
	words     string
}

// ofSession lists the processes of a session that are no zombies.
func ofSession(t *testing.T, session int) []process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must.Do(t, err)
	var list []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		read := func(name string) string {
			text, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), name))
			return string(text)
		}
		// pid (name) state ppid pgrp session tty tpgid flags …
		front, rest, _ := strings.Cut(read("stat"), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 7 || fields[3] != strconv.Itoa(session) || fields[0] == "Z" {
			continue
		}
		flags, _ := strconv.ParseUint(fields[6], 10, 64)
		_, name, _ := strings.Cut(front, "(")
		const exiting = 0x4 // PF_EXITING
		list = append(list, process{pid, name, flags&exiting != 0 || isKilled(read("status")), strings.ReplaceAll(read("cmdline"), "\x00", " ")})
	}
	return list
}

// isKilled looks for SIGKILL among the pending signals of a thread (proc(5)).
func isKilled(status string) bool {
	for line := range strings.Lines(status) {
		if mask, ok := strings.CutPrefix(line, "SigPnd:"); ok {
			pending, _ := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return pending&(1<<(syscall.SIGKILL-1)) != 0
		}
	}
	return true // it is gone by now
}
