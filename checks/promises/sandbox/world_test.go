//go:build lab

package sandbox_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
)

const patience = trial.Patience

var (
	update = flag.String("update", "", "write the golden files anew, into this `folder`")
	// top holds all worlds and the probe. It lies in the user's own home, as
	// claudebox refuses projects in some other places.
	top, probe string
)

func TestMain(m *testing.M) { flag.Parse(); os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	if os.Getenv("CLAUDEBOX_BIN") == "" {
		fmt.Fprintln(os.Stderr, "CLAUDEBOX_BIN is not set: run checks/test, or see the package's documentation")
		return 1
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = trial.Remove(top) }()
	defer func() { removeHosts(hosts) }()
	return m.Run()
}

func prepare() error {
	home, err := trial.Top()
	if err != nil {
		return err
	}
	if top, err = os.MkdirTemp(home, "cb-sandbox-"); err != nil {
		return err
	}
	probe = filepath.Join(top, "probe")
	return trial.Build(probe, "./probe")
}

// world is a user of claudebox with a home, a project and an environment.
type world struct {
	home, project string
	env           map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldHere(t)
}

// newWorldHere is another world in a test that runs already.
func newWorldHere(t *testing.T) *world {
	t.Helper()
	home, err := os.MkdirTemp(top, "home-")
	must.Do(t, err)
	t.Cleanup(func() { _ = trial.Remove(home) }) // what a program that still runs makes anew goes with the top
	w := &world{home: home, project: filepath.Join(home, "project")}
	w.folder(t, "project")
	w.folder(t, ".local/share/claude")
	must.Do(t, os.Link(probe, w.path(".local/share/claude/claude")))
	w.link(t, "../share/claude/claude", ".local/bin/claude") // as Claude Code's installer does
	w.env = map[string]string{
		"HOME": home, "USER": "someone", "PATH": home + "/.local/bin:/usr/bin:/bin", "TERM": "xterm", "LANG": "C.UTF-8", "TZ": "UTC",
	}
	return w
}

// path is a path of the world: absolute, or below the home.
func (w *world) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(w.home, name)
}

func (w *world) folder(t *testing.T, name string) string {
	t.Helper()
	name = w.path(name)
	must.Do(t, os.MkdirAll(name, 0o755))
	return name
}

func (w *world) write(t *testing.T, name, content string) string {
	t.Helper()
	name = w.path(name)
	must.Write(t, name, content)
	return name
}

func (w *world) link(t *testing.T, target, name string) string {
	t.Helper()
	name = w.path(name)
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(target, name))
	return name
}

func (w *world) read(t *testing.T, name string) string {
	t.Helper()
	return must.Read(t, w.path(name))
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// profile writes a profile that extends the default one, and returns its file.
func (w *world) profile(t *testing.T, lines ...string) string {
	t.Helper()
	return w.write(t, "profile.yaml", "name: test\nextends: default\n"+strings.Join(lines, "\n")+"\n")
}

// claudebox is a call in the project, without a terminal.
func (w *world) claudebox(words ...string) *exec.Cmd {
	cmd := exec.Command(os.Getenv("CLAUDEBOX_BIN"), words...)
	cmd.Dir, cmd.WaitDelay = w.project, patience
	cmd.Env = w.environment()
	return cmd
}

func (w *world) environment() []string {
	var list []string
	for name, value := range w.env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// outcome is what a run left.
type outcome struct {
	status         int
	stdout, stderr string
}

func run(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	status, stdout, stderr := trial.Run(t, cmd)
	return outcome{status, stdout, trial.WithoutProgress(stderr)}
}

// session runs a script by bash in a sandbox. Flags of claudebox go before.
// beside runs a command while the test goes on.
func beside(t *testing.T, cmd *exec.Cmd) <-chan outcome {
	ended := make(chan outcome)
	go func() { ended <- run(t, cmd) }()
	return ended
}

func (w *world) session(script string, flags ...string) *exec.Cmd {
	words := slices.Concat([]string{"shell", "--yes", "--no-report"}, flags, []string{"--", "bash", "-euc", script})
	return w.claudebox(words...)
}

// inside is what a script in a sandbox prints; it must succeed, and nothing
// may be on standard error.
func (w *world) inside(t *testing.T, script string, flags ...string) string {
	t.Helper()
	return succeed(t, w.session(script, flags...))
}

func succeed(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	got := run(t, cmd)
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("%q\nstatus %d\nstderr: %s\nstdout: %s", cmd.Args[1:], got.status, got.stderr, got.stdout)
	}
	return got.stdout
}

// succeedWarned is [succeed] for a session that begins with red remarks, which
// hold these words.
func succeedWarned(t *testing.T, cmd *exec.Cmd, words string) string {
	t.Helper()
	got := run(t, cmd)
	if got.status != 0 || !strings.Contains(got.stderr, words) {
		t.Fatalf("%q\nstatus %d\nno %q in stderr: %s\nstdout: %s", cmd.Args[1:], got.status, words, got.stderr, got.stdout)
	}
	return got.stdout
}

// withProbe runs the probe in a sandbox, mounted at a path of its own.
func (w *world) withProbe(words []string, flags ...string) *exec.Cmd {
	const place = "/opt/probe"
	return w.claudebox(slices.Concat(
		[]string{"shell", "--yes", "--no-report", "--mount-ro", probe + ":" + place}, flags, []string{"--", place}, words,
	)...)
}

// wantRefused is the fate of a launch that must not start: status 125, the
// reason and a remedy on standard error, nothing on standard output.
func wantRefused(t *testing.T, got outcome, reason string) {
	t.Helper()
	if got.status != 125 || got.stdout != "" || !strings.Contains(got.stderr, reason) || !strings.Contains(got.stderr, "remedy: ") {
		t.Errorf("status %d, stdout %q, stderr:\n%s\nwant a refusal that says %q", got.status, got.stdout, got.stderr, reason)
	}
}

// oneLine is a text without its line ends.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func wantEqual(t *testing.T, got, want string) {
	t.Helper()
	const page = 2000 // bytes that are read in full
	switch {
	case got == want:
	case len(got)+len(want) < page:
		t.Errorf("got:\n%s\nwant:\n%s\n%s", got, want, difference(got, want))
	default:
		t.Errorf("got (+), want (-):\n%s", difference(got, want))
	}
}

// difference lists the lines that only one of two texts has.
func difference(got, want string) string {
	var b strings.Builder
	lines := func(sign string, all, known string) {
		has := map[string]bool{}
		for line := range strings.Lines(known) {
			has[line] = true
		}
		for line := range strings.Lines(all) {
			if !has[line] && b.Len() < 16<<10 {
				b.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	lines("+ ", got, want)
	lines("- ", want, got)
	return b.String()
}

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update != "" {
		must.Write(t, filepath.Join(*update, name), got)
		return
	}
	want := must.Read(t, filepath.Join("testdata", name))
	wantEqual(t, got, want)
}

var storePath = regexp.MustCompile(`/nix/store/[a-z0-9]{32}-[^/\s:]+`)

// normal replaces what differs between machines and runs.
func (w *world) normal(text string) string {
	text = strings.ReplaceAll(text, w.home, "HOME")
	return storePath.ReplaceAllString(text, "STORE")
}

// asked matches a question that waits for an answer.
var asked = regexp.MustCompile(`\[(?:n\]: |y/N\] )$`)

// typed is what a call shows at a terminal where somebody types. A letter is an answer, typed when it was asked for: what
// is typed before a question is none.
func typed(t *testing.T, cmd *exec.Cmd, text string) string {
	t.Helper()
	terminal, err := pty.Start(cmd)
	must.Do(t, err)
	defer terminal.Close()
	defer trial.Bound(t, cmd)()
	var shown []byte
	for part := make([]byte, 4<<10); len(text) == len("y\n") && !asked.Match(shown); {
		n, err := terminal.Read(part)
		if shown = append(shown, part[:n]...); err != nil {
			break
		}
	}
	if _, err := terminal.WriteString(text); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(terminal) // EIO when the last one has closed it
	_ = cmd.Wait()                  // its status is asked for by who wants it
	return string(append(shown, rest...))
}

// atTerminal is what a call shows at a terminal where somebody types; it must
// succeed.
func atTerminal(t *testing.T, cmd *exec.Cmd, text string) string {
	t.Helper()
	shown := typed(t, cmd, text)
	if !cmd.ProcessState.Success() {
		t.Errorf("%v:\n%s", cmd.ProcessState, shown)
	}
	return shown
}
