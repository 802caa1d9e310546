// Package debian is what tests run of other Debians, which checks/lab/releases.sh has unpacked: their Nix daemons, each
// with a store of its own.
package debian

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/nix/nixdaemon"
)

// Roots are the folders of the releases that have a Nix daemon, by their names.
func Roots(t testing.TB) map[string]string {
	t.Helper()
	folder := os.Getenv("CLAUDEBOX_LAB_RELEASES")
	releases, err := os.ReadDir(folder)
	if folder != "" {
		must.Do(t, err)
	}
	roots := map[string]string{}
	for _, r := range releases {
		root := filepath.Join(folder, r.Name())
		if _, err := os.Stat(filepath.Join(root, "usr/bin/nix-daemon")); err == nil {
			roots[r.Name()] = root
		}
	}
	return roots
}

// Daemon runs as this very user until the test ends. Its store lies at /nix of a mount namespace, and is the test's alone.
type Daemon struct {
	State  string   // the folder that is /nix there
	Inside []string // words that lead a program there
	Kill   func()
}

// Options are how a daemon is started.
type Options struct {
	Conf   string   // more of its nix.conf
	Mounts []string // more words for bwrap
	Words  []string // the daemon; none: the release's own
}

// Start starts a daemon with the files of an unpacked release, and waits for its first answer: until then its database is
// being made, and others are turned away.
func Start(t testing.TB, root string, o Options) Daemon {
	t.Helper()
	state, err := os.MkdirTemp("", "nix-")
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, trial.Remove(state)) })
	for _, dir := range []string{"store", "var/nix", "etc"} {
		must.Do(t, os.MkdirAll(filepath.Join(state, dir), 0o755))
	}
	must.Write(t, filepath.Join(state, "etc/nix.conf"),
		"build-users-group =\nsandbox = false\nsandbox-paths =\nsubstituters =\ntrusted-users = root\nmax-jobs = 2\n"+o.Conf)
	d := Daemon{State: state, Inside: slices.Concat([]string{
		trial.Tool(t, "bwrap"), "--die-with-parent", "--dev", "/dev", "--bind", "/proc", "/proc",
		"--tmpfs", "/tmp", "--bind", os.TempDir(), os.TempDir(), "--bind", state, "/nix",
		"--ro-bind", root + "/usr", "/usr", "--symlink", "usr/bin", "/bin",
		"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", "/etc/passwd", "/etc/passwd", "--ro-bind", "/etc/group", "/etc/group",
		"--setenv", "NIX_CONF_DIR", "/nix/etc", "--setenv", "PATH", "/usr/bin",
	}, o.Mounts, []string{"--"})}
	if o.Words == nil {
		o.Words = []string{"nix-daemon"}
	}
	d.start(t, o.Words)
	return d
}

// Socket is the daemon's.
func (d Daemon) Socket() string { return filepath.Join(d.State, "var/nix/daemon-socket/socket") }

// Command runs a program there, with no variables but those of the mount namespace.
func (d Daemon) Command(words ...string) *exec.Cmd {
	words = slices.Concat(d.Inside, words)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = []string{}
	return cmd
}

func (d *Daemon) start(t testing.TB, words []string) {
	t.Helper()
	cmd := d.Command(words...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log")) // no pipe: what it has started outlives it
	must.Do(t, err)
	defer log.Close()
	cmd.Stderr = log
	must.Do(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	d.Kill = func() {
		_ = cmd.Process.Kill() // it may have ended
		ended <- <-ended
	}
	t.Cleanup(d.Kill)
	for range 500 {
		if client, err := nixdaemon.Dial(t.Context(), d.Socket(), nixdaemon.Options{}); err == nil {
			t.Logf("the daemon is of Nix %s", client.Info().Version)
			client.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the daemon ended: %v: %s", err, must.Read(t, log.Name()))
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("the daemon did not come up")
}
