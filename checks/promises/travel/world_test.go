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

	"claudebox/checks/kit/debian"
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
	t.Cleanup(func() { must.Do(t, trial.Remove(dir)) })
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
type colleague struct{ debian.Daemon }

// newColleague starts a daemon with a configuration.
func newColleague(t *testing.T, d debian.Options, root, conf string, m maker) colleague {
	t.Helper()
	d.Conf = conf
	d.Mounts = slices.Concat(d.Mounts, []string{
		"--ro-bind", os.Getenv("CLAUDEBOX_BIN"), "/claudebox",
		"--ro-bind", os.Getenv("CLAUDEBOX_MANIFEST"), "/share/claudebox/manifest.json",
		"--chdir", m.path("home/project"), "--setenv", "HOME", m.path("home"),
	})
	return colleague{debian.Start(t, root, d)}
}

// thisMachines is the daemon of the lab's own Nix, started by its loader, as
// the store it comes from is not where it looks.
func thisMachines(t *testing.T) debian.Options {
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
	return debian.Options{
		Mounts: []string{"--ro-bind", libs, "/libs", "--ro-bind", filepath.Dir(filepath.Dir(program)), "/newer"},
		Words:  []string{"/libs/lib/ld-linux-x86-64.so.2", "--library-path", "/libs/lib:/newer/lib/x86_64-linux-gnu", "/newer/bin/nix-daemon"},
	}
}

// trust is what the daemon says of whom it serves.
func (c colleague) trust(t *testing.T) nixdaemon.Trust {
	t.Helper()
	client, err := nixdaemon.Dial(t.Context(), c.Socket(), nixdaemon.Options{})
	must.Do(t, err)
	defer client.Close()
	return client.Info().Trust
}

// claudebox runs claudebox there.
func (c colleague) claudebox(words ...string) *exec.Cmd {
	cmd := c.Command(append([]string{"/claudebox"}, words...)...)
	cmd.Env = []string{"TERM=dumb"}
	return cmd
}

// has gives the names in its store.
func (c colleague) has(t *testing.T) []string {
	t.Helper()
	found, err := os.ReadDir(filepath.Join(c.State, "store"))
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
