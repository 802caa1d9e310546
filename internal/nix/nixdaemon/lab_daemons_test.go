//go:build lab

package nixdaemon_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/debian"
	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/nix/nixdaemon"
)

// lab is a daemon that tests run against: the one of this machine, or one of
// another version that runs for the test alone, as this very user, with a
// store of its own at /nix in a mount namespace.
type lab struct {
	socket string
	own    debian.Daemon // empty for this machine's
}

// onEach runs a test against each daemon.
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
	for name, root := range debian.Roots(t) {
		t.Run(name, func(t *testing.T) { test(t, root) })
	}
}

// startDaemon starts the daemon of a release. More words for bwrap may change where its store lies.
func startDaemon(t *testing.T, root string, more ...string) lab {
	t.Helper()
	d := debian.Start(t, root, debian.Options{Mounts: more})
	return lab{socket: d.Socket(), own: d}
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
	words := append(slices.Clone(l.own.Inside), append([]string{program}, args...)...)
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
