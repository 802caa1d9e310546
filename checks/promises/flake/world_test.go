//go:build lab

package flake_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

// top is a folder of the user's own, for what the tests make; lab is the
// stand-in nixpkgs, root the repository, agents where Claude Code is.
var top, lab, root, agents string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	lab, agents = os.Getenv("CLAUDEBOX_NIXPKGS"), filepath.Dir(os.Getenv("CLAUDEBOX_TEST_CLAUDE"))
	home, err := trial.Top()
	if lab == "" || err != nil {
		fmt.Fprintln(os.Stderr, "CLAUDEBOX_NIXPKGS is not set: run checks/test, or see checks/README.md")
		return 1
	}
	if _, err := os.Stat(lab); err != nil {
		fmt.Fprintln(os.Stderr, "not run: there is no lab at "+lab+"; with Nix and nixpkgs, `nix flake check` says more")
		return 0
	}
	if root, err = filepath.Abs("../../.."); err == nil {
		top, err = os.MkdirTemp(home, "cb-flake-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(top)
	return m.Run()
}

// folder makes a folder of the test's own.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(top, "dir-")
	must.Do(t, err)
	return dir
}

func write(t *testing.T, file, content string) string {
	t.Helper()
	must.Write(t, file, content)
	return file
}

// run gives what a command prints, and what it complains of.
func run(c *exec.Cmd) (stdout, stderr string, err error) {
	var out, complaints bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaints
	err = c.Run()
	return out.String(), complaints.String(), err
}

func succeed(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	stdout, stderr, err := run(c)
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(c.Args, " "), err, stdout, stderr)
	}
	return stdout
}

// fail gives the complaints of a command that has to fail.
func fail(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	stdout, stderr, err := run(c)
	if err == nil {
		t.Fatalf("%s succeeds:\n%s%s", strings.Join(c.Args, " "), stdout, stderr)
	}
	return stderr
}

// nix is a command of Nix's new form on our flake, or on the example's when
// prefix is "claudebox/": its inputs are the lab's.
func nix(prefix string, words ...string) *exec.Cmd {
	words = append([]string{"--extra-experimental-features", "nix-command flakes", "--no-warn-dirty"}, words...)
	words = append(words, "--no-write-lock-file")
	if prefix != "" {
		words = append(words, "--override-input", strings.TrimSuffix(prefix, "/"), "path:"+root)
	}
	for input, source := range map[string]string{"nixpkgs": "", prefix + "nix-index-database": "/nix-index-database", "home-manager": "/home-manager"} {
		words = append(words, "--override-input", input, "path:"+lab+source)
	}
	return exec.Command("nix", words...)
}

// world names testdata/world.nix in an expression, as w.
func world(overlay string) string {
	return fmt.Sprintf("let w = import %s/checks/promises/flake/testdata/world.nix { lab = %s; root = %s; overlay = %s; }; in ", root, lab, root, overlay)
}

const noOverlay = "(_: _: { })"

// build makes the value of an expression that may name w.
func build(expression string) *exec.Cmd {
	return exec.Command("nix-build", "--no-out-link", "--expr", world(noOverlay)+expression)
}

// user is somebody with a home and a project, whose claudebox is in a folder
// that Nix built.
type user struct{ bin, home, project string }

func newUser(t *testing.T, bin string) user {
	t.Helper()
	home := folder(t)
	u := user{bin: bin, home: home, project: filepath.Join(home, "project")}
	must.Do(t, os.Mkdir(u.project, 0o755))
	return u
}

func (u user) environment() []string {
	return []string{"HOME=" + u.home, "USER=alice", "PATH=" + agents + ":/usr/bin:/bin", "TERM=xterm", "LANG=C.UTF-8"}
}

func (u user) claudebox(words ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(u.bin, "claudebox"), words...)
	c.Dir, c.Env = u.project, u.environment()
	return c
}
