//go:build lab

package travel_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/internal/nix/nixdaemon"
)

// profile is for a sandbox that needs no daemon.
const profile = `name: work
packages: [hello]
network: none
confirm: never
nix: {daemon: "off"}
`

// maker is who makes a plan, in the store of this machine.
type maker struct{ dir string }

func newMaker(t *testing.T, profile string) maker {
	t.Helper()
	dir, err := os.MkdirTemp("", "travel-")
	must.Do(t, err)
	t.Cleanup(func() { remove(dir) })
	m := maker{dir}
	m.write(t, "work.yaml", profile)
	must.Do(t, os.MkdirAll(filepath.Join(dir, "home/project"), 0o755))
	m.write(t, "plan.json", m.claudebox(t, "plan", "--pinned", "--profile", m.path("work.yaml")))
	return m
}

func (m maker) path(name string) string { return filepath.Join(m.dir, name) }

func (m maker) write(t *testing.T, name, content string) {
	t.Helper()
	must.Write(t, m.path(name), content)
}

func (m maker) claudebox(t *testing.T, words ...string) string {
	t.Helper()
	c := exec.Command(os.Getenv("CLAUDEBOX_BIN"), words...)
	c.Dir, c.Env = m.path("home/project"), []string{"HOME=" + m.path("home"), "PATH=/usr/bin:/bin"}
	return succeed(t, c)
}

// paths are what has to travel with the plan.
func (m maker) paths(t *testing.T) []string {
	t.Helper()
	return strings.Fields(m.claudebox(t, "plan", "--store-paths", "--plan", m.path("plan.json")))
}

// push copies what the plan needs to a binary cache, signed or not, and gives
// the public key.
func (m maker) push(t *testing.T, cache string, signed bool) (key string) {
	t.Helper()
	url := "file://" + m.path(cache) + "?compression=none"
	if signed {
		secret := succeed(t, nix("key", "generate-secret", "--key-name", "team-1"))
		m.write(t, "secret", secret)
		url += "&secret-key=" + m.path("secret")
		convert := nix("key", "convert-secret-to-public")
		convert.Stdin = strings.NewReader(secret)
		key = strings.TrimSpace(succeed(t, convert))
	}
	succeed(t, nix(append([]string{"copy", "--to", url}, m.paths(t)...)...))
	return key
}

func nix(words ...string) *exec.Cmd {
	return exec.Command("nix", append([]string{"--extra-experimental-features", "nix-command"}, words...)...)
}

// colleague has a machine of its own: another file system, with a Nix daemon
// whose store is empty, and claudebox as a file.
type colleague struct {
	state  string
	inside []string // words that lead a program there
	trust  nixdaemon.Trust
	stop   func() // ends it
}

// releases are the roots of unpacked Debians, by name, and this machine's Nix.
func releases(t *testing.T) map[string]string {
	t.Helper()
	folder := os.Getenv("CLAUDEBOX_LAB_RELEASES")
	roots := map[string]string{}
	found, err := os.ReadDir(folder)
	if folder != "" && err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		root := filepath.Join(folder, r.Name())
		if _, err := os.Stat(filepath.Join(root, "usr/bin/nix-daemon")); err == nil {
			roots[r.Name()] = root
		}
	}
	return roots
}

// newColleague starts the daemon of a release with a configuration. program
// is empty, or this machine's own nix-daemon as one can start it there.
func newColleague(t *testing.T, root, conf string, m maker, daemon daemon) colleague {
	t.Helper()
	state, err := os.MkdirTemp("", "nix-")
	must.Do(t, err)
	t.Cleanup(func() { remove(state) })
	for _, dir := range []string{"store", "var/nix", "etc"} {
		must.Do(t, os.MkdirAll(filepath.Join(state, dir), 0o755))
	}
	words := []string{
		trial.Tool(t, "bwrap"), "--die-with-parent", "--dev", "/dev", "--bind", "/proc", "/proc", "--tmpfs", "/tmp", "--bind", os.TempDir(), os.TempDir(), "--bind", state, "/nix",
		"--ro-bind", root + "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", "/etc/passwd", "/etc/passwd", "--ro-bind", "/etc/group", "/etc/group",
		"--ro-bind", os.Getenv("CLAUDEBOX_BIN"), "/claudebox",
		"--ro-bind", os.Getenv("CLAUDEBOX_MANIFEST"), "/share/claudebox/manifest.json", "--chdir", m.path("home/project"),
		"--setenv", "NIX_CONF_DIR", "/nix/etc", "--setenv", "PATH", "/usr/bin", "--setenv", "HOME", m.path("home"),
	}
	c := colleague{state: state, inside: append(append(words, daemon.mounts...), "--")}
	c.configure(t, conf)
	c.start(t, daemon)
	return c
}

// configure writes what the daemon reads when it starts.
func (c colleague) configure(t *testing.T, conf string) {
	t.Helper()
	conf = "build-users-group =\nsandbox = false\nsandbox-paths =\ntrusted-users = root\n" + conf
	must.Write(t, filepath.Join(c.state, "etc/nix.conf"), conf)
}

// daemon is how a daemon is started.
type daemon struct{ mounts, words []string }

var debians = daemon{nil, []string{"nix-daemon"}}

// thisMachines is the daemon of the lab's own Nix, started by its loader, as
// the store it comes from is not where it looks.
func thisMachines(t *testing.T) daemon {
	t.Helper()
	libs, program := "", trial.Tool(t, "nix")
	for path := range strings.Lines(succeed(t, exec.Command("nix-store", "--query", "--references", program))) {
		if path = strings.TrimSpace(path); strings.HasSuffix(path, "-libraries") {
			libs = path
		}
	}
	if libs == "" {
		t.Fatal("the lab's Nix has no folder of libraries")
	}
	return daemon{
		[]string{"--ro-bind", libs, "/libs", "--ro-bind", filepath.Dir(filepath.Dir(program)), "/newer"},
		[]string{"/libs/lib/ld-linux-x86-64.so.2", "--library-path", "/libs/lib:/newer/lib/x86_64-linux-gnu", "/newer/bin/nix-daemon"},
	}
}

func (c colleague) socket() string { return filepath.Join(c.state, "var/nix/daemon-socket/socket") }

// start runs the daemon until the test ends, and waits for a first answer.
func (c *colleague) start(t *testing.T, d daemon) {
	t.Helper()
	cmd := exec.Command(c.inside[0], append(slices.Clone(c.inside[1:]), d.words...)...)
	cmd.Env = []string{}
	var log bytes.Buffer
	cmd.Stderr = &log
	must.Do(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	c.stop = func() {
		cmd.Process.Kill()
		ended <- <-ended
	}
	t.Cleanup(c.stop)
	for range 500 {
		client, err := nixdaemon.Dial(t.Context(), c.socket(), nixdaemon.Options{})
		if err == nil {
			c.trust = client.Info().Trust
			t.Logf("the daemon is of Nix %s", client.Info().Version)
			client.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the daemon ended: %v: %s", err, log.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("the daemon did not come up")
}

// claudebox runs claudebox there.
func (c colleague) claudebox(words ...string) *exec.Cmd {
	cmd := exec.Command(c.inside[0], append(append(slices.Clone(c.inside[1:]), "/claudebox"), words...)...)
	cmd.Env = []string{"TERM=dumb"}
	return cmd
}

// has gives the names in its store.
func (c colleague) has(t *testing.T) []string {
	t.Helper()
	found, err := os.ReadDir(filepath.Join(c.state, "store"))
	must.Do(t, err)
	var names []string
	for _, f := range found {
		if !strings.HasPrefix(f.Name(), ".") {
			names = append(names, f.Name())
		}
	}
	return names
}

func succeed(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(c.Args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// outcome runs a command and gives what it says and its exit status.
func outcome(t *testing.T, c *exec.Cmd) (text string, status int) {
	t.Helper()
	out, err := c.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// remove removes a folder that may hold a store.
func remove(dir string) {
	exec.Command("chmod", "-R", "u+w", dir).Run() // what is in a store is read-only
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// children are the processes that a process has started.
func children(t *testing.T, pid int) []int {
	t.Helper()
	text := must.Read(t, fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var all []int
	for word := range strings.FieldsSeq(text) {
		child, err := strconv.Atoi(word)
		must.Do(t, err)
		all = append(all, child)
	}
	return all
}
