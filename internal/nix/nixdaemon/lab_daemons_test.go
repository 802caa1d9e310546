//go:build lab

package nixdaemon_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/nix/nixdaemon"
)

// lab is a daemon that tests run against: the one of this machine, or one of
// another version that runs for the test alone, as this very user, with a
// store of its own at /nix in a mount namespace.
type lab struct {
	socket string
	inside []string // words that lead a program to an own one's file system; nobody else uses its store then
	kill   func()   // ends an own one
}

// onEach runs a test against each daemon. Those of other versions are Debian's
// packages, unpacked below CLAUDEBOX_LAB_RELEASES by checks/lab/releases.sh.
func onEach(t *testing.T, test func(*testing.T, lab)) {
	t.Run("this machine's", func(t *testing.T) { test(t, lab{socket: labSocket(t)}) })
	onOwn(t, test)
}

// onOwn runs a test against each daemon whose store is the test's own.
func onOwn(t *testing.T, test func(*testing.T, lab)) {
	onRoots(t, func(t *testing.T, root string) { test(t, startDaemon(t, root)) })
}

// onRoots runs a test with the root of each release.
func onRoots(t *testing.T, test func(t *testing.T, root string)) {
	folder := os.Getenv("CLAUDEBOX_LAB_RELEASES")
	releases, err := os.ReadDir(folder)
	if folder != "" && err != nil {
		t.Fatal(err)
	}
	for _, r := range releases {
		if _, err := os.Stat(filepath.Join(folder, r.Name(), "usr/bin/nix-daemon")); err != nil {
			continue // it is there for other tests
		}
		t.Run(r.Name(), func(t *testing.T) { test(t, filepath.Join(folder, r.Name())) })
	}
}

// startDaemon starts the daemon of an unpacked release. More words for bwrap may
// change where its store lies.
func startDaemon(t *testing.T, root string, more ...string) lab {
	t.Helper()
	state, err := os.MkdirTemp("", "nix-")
	must.Do(t, err)
	t.Cleanup(func() {
		exec.Command("chmod", "-R", "u+w", state).Run() // what is in a store is read-only
		os.RemoveAll(state)
	})
	for _, dir := range []string{"store", "var/nix", "etc"} {
		must.Do(t, os.MkdirAll(filepath.Join(state, dir), 0o755))
	}
	conf := "build-users-group =\nsandbox = false\nsubstituters =\ntrusted-users = root\nmax-jobs = 2\n"
	must.Write(t, filepath.Join(state, "etc/nix.conf"), conf)
	words := []string{
		trial.Tool(t, "bwrap"), "--die-with-parent", "--dev", "/dev", "--bind", "/proc", "/proc", "--tmpfs", "/tmp", "--bind", os.TempDir(), os.TempDir(), "--bind", state, "/nix",
		"--ro-bind", root + "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", "/etc/passwd", "/etc/passwd", "--ro-bind", "/etc/group", "/etc/group",
		"--setenv", "NIX_CONF_DIR", "/nix/etc", "--setenv", "PATH", "/usr/bin",
	}
	l := lab{socket: filepath.Join(state, "var/nix/daemon-socket/socket"), inside: append(append(words, more...), "--")}
	l.start(t)
	return l
}

// start runs the daemon until the test ends, and waits for a first answer: until
// then its database is being made, and others are turned away.
func (l *lab) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(l.inside[0], append(slices.Clone(l.inside[1:]), "nix-daemon")...)
	cmd.Env = []string{}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must.Do(t, err)
	defer log.Close()
	cmd.Stderr = log
	must.Do(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	l.kill = func() {
		cmd.Process.Kill()
		ended <- <-ended
	}
	t.Cleanup(l.kill)
	for range 500 {
		if c, err := nixdaemon.Dial(t.Context(), l.socket, nixdaemon.Options{}); err == nil {
			c.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("the daemon ended: %v: %s", err, text)
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("the daemon did not come up")
}

func labSocket(t testing.TB) string {
	t.Helper()
	socket := os.Getenv("CLAUDEBOX_LAB_SOCKET")
	if socket == "" {
		t.Fatal("CLAUDEBOX_LAB_SOCKET names no daemon")
	}
	return socket
}

func (l lab) client(t testing.TB, opts nixdaemon.Options) *nixdaemon.Client {
	t.Helper()
	c, err := nixdaemon.Dial(t.Context(), l.socket, opts)
	must.Do(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// nix runs one of Nix's own programs against the daemon.
func (l lab) nix(t testing.TB, program string, args ...string) (string, error) {
	t.Helper()
	words := append(slices.Clone(l.inside), append([]string{program}, args...)...)
	var out []byte
	said, err := trial.Collect(func() (_ []byte, err error) {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = append(os.Environ(), "NIX_REMOTE=unix://"+l.socket)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err = cmd.Output()
		return said.Bytes(), err
	})
	if err != nil {
		err = fmt.Errorf("%s %q: %w\n%s", program, args, err, said)
	}
	return strings.TrimSpace(string(out)), err
}

func (l lab) must(t testing.TB, program string, args ...string) string {
	t.Helper()
	out, err := l.nix(t, program, args...)
	must.Do(t, err)
	return out
}
