//go:build lab

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownPrograms is a claudebox of a world's own, with the file of its whole
// program.
func (w *world) ownPrograms(t *testing.T) (program, whole string) {
	t.Helper()
	from := filepath.Dir(filepath.Dir(os.Getenv("CLAUDEBOX_BIN")))
	for _, folder := range []string{"bin", "libexec", "share/claudebox"} {
		if err := os.CopyFS(w.path(filepath.Join("own", folder)), os.DirFS(filepath.Join(from, folder))); err != nil {
			t.Fatal(err)
		}
	}
	return w.path("own/bin/claudebox"), w.path("own/libexec/claudebox")
}

// settle waits until files that were just written are old enough to be told from
// later ones by their time: nothing is kept of younger ones.
func settle() { time.Sleep(1100 * time.Millisecond) }

// opened tells how often a file was opened while something was done; a program
// is opened to be run.
func opened(t *testing.T, file string, do func()) (count int) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, file, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	do()
	events := make([]byte, 1<<14)
	n, err := unix.Read(fd, events)
	if err == unix.EAGAIN {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return n / int(unsafe.Sizeof(unix.InotifyEvent{}))
}

// The second launch is as the first, by the small program alone.
func TestALaunchByAKeptPlanStartsNoOtherProgram(t *testing.T) {
	w := newWorld(t)
	program, whole := w.ownPrograms(t)
	profile := w.profile(t, `agent: {command: [bash, -c, 'echo "$0 $*"; ulimit -Sn; echo >&2 oh; exit 7']}`)
	settle()
	launch := func() (got outcome) {
		cmd := w.claudebox("-P", profile, "-y", "--no-report", "--", "a", "b")
		cmd.Path = program
		cmd.Args[0] = program
		return run(t, limited(cmd))
	}
	var first, second, third outcome
	if n := opened(t, whole, func() { first = launch() }); n == 0 {
		t.Error("the first launch, for which there is no plan, did not start the whole program")
	}
	if n := opened(t, whole, func() { second = launch() }); n != 0 {
		t.Errorf("the second launch started the whole program %d times", n)
	}
	w.profile(t, `agent: {command: [bash, -c, 'echo "$0 $*"; ulimit -Sn; echo >&2 oh; exit 7']}`, "description: changed")
	if n := opened(t, whole, func() { third = launch() }); n == 0 {
		t.Error("a launch by a changed profile did not start the whole program")
	}
	if want := (outcome{7, "a b\n123\n", "oh\n"}); first != want || second != want || third != want {
		t.Errorf("got  %+v\nthen %+v\nthen %+v\nwant %+v", first, second, third, want)
	}
}

// limited is a command with a limit of open files that Go would raise.
func limited(cmd *exec.Cmd) *exec.Cmd {
	cmd.Args = append([]string{"sh", "-c", `ulimit -Sn 123; exec "$@"`, "sh"}, cmd.Args...)
	cmd.Path = "/bin/sh"
	return cmd
}

// What a project brings is read by the whole program, until it is kept as well.
func TestAProjectsOwnProfileIsReadByTheWholeProgram(t *testing.T) {
	w := newWorld(t)
	program, whole := w.ownPrograms(t)
	profile := w.profile(t, "agent: {command: [bash, -c, 'echo $MODE']}")
	launch := func() (got outcome) {
		cmd := w.claudebox("-P", profile, "-y", "--no-report")
		cmd.Path = program
		return run(t, cmd)
	}
	settle()
	launch()
	if n := opened(t, whole, func() { launch() }); n != 0 {
		t.Fatal("no plan was kept")
	}
	w.write(t, "project/.claudebox.yaml", "network: none\n")
	settle()
	if n := opened(t, whole, func() { launch() }); n == 0 {
		t.Error("the project's profile was not read")
	}
	var got outcome
	if n := opened(t, whole, func() { got = launch() }); n != 0 || got.status != 0 {
		t.Errorf("the whole program was started %d times; %+v", n, got)
	}
	w.write(t, "project/.claudebox.yaml", "netwrk: none\n")
	if got, want := launch(), `.claudebox.yaml:1:1: unknown key "netwrk"`; got.status != 125 || !strings.Contains(got.stderr, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
}
