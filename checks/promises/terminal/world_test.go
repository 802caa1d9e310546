//go:build lab

package terminal_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
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
)

// patience is how long a test waits for what must come. It only bounds a
// hang; no test measures time.
const patience = trial.Patience

// probe is the agent, built once.
var probe string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	if os.Getenv("CLAUDEBOX_BIN") == "" {
		fmt.Fprintln(os.Stderr, "CLAUDEBOX_BIN is not set: run checks/test, or see the package's documentation")
		return 1
	}
	dir, err := os.MkdirTemp("", "claudebox-probe-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	probe = filepath.Join(dir, "probe")
	if err := trial.Build(probe, "./probe"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// world is a user of claudebox with a home and a project in it.
type world struct {
	home, project string
	probes        net.Listener
}

// newWorld makes a user. When the test ends, no process of the world may be
// left.
func newWorld(t *testing.T) *world {
	t.Helper()
	home := trial.Home(t, "cb-tty-") // short, for a socket's path
	w := &world{home: home, project: filepath.Join(home, "p")}
	t.Cleanup(func() { w.awaitGone(t) })
	for _, dir := range []string{"p", "run", "tmp", "bin", "meet"} {
		must.Do(t, os.Mkdir(filepath.Join(home, dir), 0o700))
	}
	if err := os.Link(probe, filepath.Join(home, "bin/probe")); err != nil {
		copyProgram(t, probe, filepath.Join(home, "bin/probe"))
	}
	w.profile(t, "probe", "agent: {command: ["+home+"/bin/probe]}")
	var err error
	if w.probes, err = net.Listen("unix", filepath.Join(home, "meet/probe")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.probes.Close() })
	return w
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	must.Program(t, to, must.Read(t, from))
}

// profile writes a profile beside the project. The folder in which probes and
// test meet is mounted: a socket in the project would be covered.
func (w *world) profile(t *testing.T, name string, lines ...string) {
	t.Helper()
	text := "name: " + name + "\nextends: default\nnix: {daemon: off}\nmounts: [{host: " + w.home + "/meet, mode: rw}]\n" + strings.Join(lines, "\n") + "\n"
	must.Write(t, w.file(name), text)
}

func (w *world) file(profile string) string { return filepath.Join(w.home, profile+".yaml") }

// environment is all that claudebox and the shells get.
func (w *world) environment() []string {
	return []string{
		"HOME=" + w.home, "USER=user", "PATH=/usr/bin:/bin", "TERM=xterm", "LANG=C.UTF-8", "PS1=@ ", "HISTFILE=",
		"XDG_RUNTIME_DIR=" + w.home + "/run", "TMPDIR=" + w.home + "/tmp",
	}
}

// claudebox is a call with the probe as agent.
func (w *world) claudebox(words ...string) *exec.Cmd {
	return w.command(append([]string{os.Getenv("CLAUDEBOX_BIN"), "-P", w.file("probe")}, words...)...)
}

// command is any program in the project.
func (w *world) command(words ...string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.project, w.environment(), patience
	return cmd
}

// outcome is what a run left.
type outcome struct {
	status         int
	stdout, stderr string
}

// run waits for a command that has no terminal.
func run(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	status, stdout, stderr := trial.Run(t, cmd)
	return outcome{status, stdout, stderr}
}

// process is one of the world's.
type process struct {
	pid   int
	state byte // proc(5): R, S, T …
	first bool // pid 1 of a sandbox, which no signal stops
	words string
}

// processes are claudebox, bwrap and agent: each has a path of the world on
// its command line.
func (w *world) processes() []process {
	var list []process
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		words, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		stat, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		_, rest, ok := bytes.Cut(stat, []byte(") "))
		if ok && bytes.Contains(words, []byte(w.home)) {
			list = append(list, process{pid, rest[0], isFirst(pid), string(bytes.ReplaceAll(words, []byte{0}, []byte{' '}))})
		}
	}
	return list
}

// isFirst reports whether a process is pid 1 in a namespace of its own.
func isFirst(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\nNSpid:")
	ids, _, _ := strings.Cut(rest, "\n")
	return strings.HasSuffix(ids, "\t1")
}

func pids(list []process) []int {
	var all []int
	for _, p := range list {
		all = append(all, p.pid)
	}
	slices.Sort(all)
	return all
}

// awaitGone waits until no process of the world is left, and ends those that
// stay.
func (w *world) awaitGone(t *testing.T) {
	t.Helper()
	if eventually(func() bool { return len(w.processes()) == 0 }) {
		return
	}
	for _, p := range w.processes() {
		t.Errorf("left behind: process %d (%c) %s", p.pid, p.state, p.words)
		if own, err := os.FindProcess(p.pid); err == nil {
			own.Kill()
		}
	}
}

// awaitStates waits until every process of the world is in one of the states.
func (w *world) awaitStates(t *testing.T, states string) {
	t.Helper()
	fits := func() bool {
		return !slices.ContainsFunc(w.processes(), func(p process) bool { return !p.first && !strings.ContainsRune(states, rune(p.state)) })
	}
	if !eventually(fits) {
		t.Fatalf("not all are in a state of %q: %+v", states, w.processes())
	}
}

// eventually looks again and again until it is so, or patience is over.
func eventually(so func() bool) bool {
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// files lists everything in the world's home.
func (w *world) files(t *testing.T) []string {
	t.Helper()
	var list []string
	must.Do(t, filepath.WalkDir(w.home, func(path string, _ fs.DirEntry, err error) error {
		list = append(list, strings.TrimPrefix(path, w.home))
		return err
	}))
	return list
}
