// Package trial is what the tests with a built claudebox share: where their
// users live, and what running a program leaves. It imports must and the
// standard library.
package trial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// Patience is how long a program may hang before its test fails. It only bounds
// a hang; no test measures time.
const Patience = 4 * time.Minute

// Short reports whether tests are to try a part of what they could:
// checks/long sets CLAUDEBOX_LONG.
func Short() bool { return os.Getenv("CLAUDEBOX_LONG") == "" }

// Count is the first number, or the second in checks/long.
func Count(short, long int) int {
	if Short() {
		return short
	}
	return long
}

// Some are the rows of a table in the order of their names: one of so many, or
// all of them in checks/long.
func Some[T any](of int, rows map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for n, name := range slices.Sorted(maps.Keys(rows)) {
			if Short() && n%of != 0 {
				continue
			}
			if !yield(name, rows[name]) {
				return
			}
		}
	}
}

// Binary is the claudebox under test.
func Binary(t *testing.T) string {
	t.Helper()
	name := os.Getenv("CLAUDEBOX_BIN")
	if name == "" {
		t.Fatal("CLAUDEBOX_BIN is not set: run checks/test, or see checks/README.md")
	}
	return name
}

// Top is the folder that tests make homes in: CLAUDEBOX_TEST_HOMES, as
// checks/as-user sets it, or else the user's own home (claudebox refuses
// projects in some other places).
func Top() (string, error) {
	if homes := os.Getenv("CLAUDEBOX_TEST_HOMES"); homes != "" {
		return homes, nil
	}
	return os.UserHomeDir()
}

// Home makes a user's home in [Top], which is gone when the test ends.
func Home(t *testing.T, prefix string) string {
	t.Helper()
	top, err := Top()
	must.Do(t, err)
	home, err := os.MkdirTemp(top, prefix)
	must.Do(t, err)
	t.Cleanup(func() {
		const patience = 20 * time.Second // for a session that a script has begun, and told to end
		err := Remove(home)
		for end := time.Now().Add(patience); err != nil && time.Now().Before(end); err = Remove(home) {
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("left behind: %v", err)
		}
	})
	return home
}

// Revision is the nixpkgs that [Lock] names: there is none of it.
const Revision = "5555555555555555555555555555555555555555"

// Lock locks the flake in a folder to the nixpkgs of the sandbox.
func Lock(t *testing.T, folder string) {
	t.Helper()
	locked := fmt.Sprintf(`{ "nodes": {
		"nixpkgs": { "locked": { "lastModified": 1700000000, "narHash": %q, "owner": "NixOS", "repo": "nixpkgs", "rev": %q, "type": "github" },
			"original": { "id": "nixpkgs", "type": "indirect" } },
		"root": { "inputs": { "nixpkgs": "nixpkgs" } } }, "root": "root", "version": 7 }`, readManifest(t).Nixpkgs.NarHash, Revision)
	must.Write(t, filepath.Join(folder, "flake.lock"), locked)
}

// manifest is what claudebox was built with.
type manifest struct {
	Nixpkgs struct{ NarHash string }
	Tools   map[string]string
}

func readManifest(t testing.TB) (m manifest) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(must.Read(t, os.Getenv("CLAUDEBOX_MANIFEST"))), &m))
	return m
}

// Tool is the program that claudebox itself runs under a name: bwrap, nix and others.
func Tool(t testing.TB, name string) string {
	t.Helper()
	program := readManifest(t).Tools[name]
	if program == "" {
		t.Fatalf("the manifest has no %s", name)
	}
	return program
}

// Remove removes a folder with all in it, also what is closed: the checkouts of sessions on a branch are.
func Remove(folder string) error {
	if err := os.RemoveAll(folder); err == nil {
		return nil
	}
	_ = exec.Command("chmod", "-R", "u+rwX", folder).Run() // what it could not change is left behind, which is told
	return os.RemoveAll(folder)
}

// Build builds a program that needs no library, by go's name for it.
func Build(file, program string, flags ...string) error {
	words := append([]string{"build", "-buildvcs=false", "-o", file}, flags...)
	cmd := exec.Command("go", append(words, program)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	return nil
}

// ending is how long a program that hangs has to say where it is.
const ending = 5 * time.Second

// Bound ends a program that hangs, fails its test, and says what runs then; the function that it returns is called once the
// program has ended.
func Bound(t *testing.T, cmd *exec.Cmd) (ended func()) {
	hang := time.AfterFunc(Patience, func() {
		mine := []string{"-u", strconv.Itoa(os.Getuid()), "--forest", "-o", "pid,stat,wchan:20,etimes,cputimes,args"}
		tree, _ := exec.Command("ps", mine...).Output()
		t.Errorf("%q hangs:\n%s", cmd.Args, tree)
		_ = cmd.Process.Signal(syscall.SIGABRT) // it may have ended just now; of Go's programs it prints where they are
		time.AfterFunc(ending, func() { _ = cmd.Process.Kill() })
	})
	return func() { hang.Stop() }
}

// Run waits for a program that has no terminal, and gives its status as a shell
// has it.
func Run(t *testing.T, cmd *exec.Cmd) (status int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = time.Second // for who keeps its streams open
	}
	must.Do(t, cmd.Start())
	defer Bound(t, cmd)()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Status(cmd.ProcessState), out.String(), complaints.String()
}

// Status is an exit status, or 128+n for the end by signal n.
func Status(state *os.ProcessState) int {
	if end := state.Sys().(syscall.WaitStatus); end.Signaled() {
		return 128 + int(end.Signal())
	}
	return state.ExitCode()
}

// Collect runs Nix's garbage collector, and again while another test's process stands in a folder whose path is longer than a
// page: Nix follows the links of /proc for its roots, and ends at such a one. It returns what the last run said.
func Collect(run func() ([]byte, error)) (said []byte, err error) {
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		said, err = run()
		if err == nil || !bytes.Contains(said, []byte("File name too long [/proc/")) || time.Since(begin) > Patience {
			return said, err
		}
	}
}

// Delete has Nix delete a store path, if nothing refers to it. See [Collect].
func Delete(path string) (said []byte, err error) {
	return Collect(func() ([]byte, error) { return exec.Command("nix-store", "--delete", path).CombinedOutput() })
}

// progress is what claudebox says while it waits for Nix: when a package is
// wanted for the first time on this machine.
var progress = regexp.MustCompile(`(?m)^claudebox: (looking packages up|fetched \d|built \d).*\n`)

// WithoutProgress leaves out what depends on what the machine has built before.
func WithoutProgress(stderr string) string { return progress.ReplaceAllString(stderr, "") }
