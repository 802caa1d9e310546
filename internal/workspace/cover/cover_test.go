package cover_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/proctree"
	"claudebox/internal/linux/within"
	"claudebox/internal/workspace/cover"
)

// sandbox is a real one, as claudebox makes it, that runs lines of shell.
type sandbox struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// newSandbox covers files of a folder: with nothing, or with themselves.
func newSandbox(t *testing.T, hidden, readOnly []string) *sandbox {
	t.Helper()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("NOT RUN: needs bwrap on PATH")
	}
	dir := must.Folder(t)
	words := []string{
		"--unshare-user", "--unshare-pid", "--disable-userns", "--cap-drop", "ALL", "--die-with-parent",
		"--tmpfs", "/", "--ro-bind-try", "/usr", "/usr", "--ro-bind-try", "/nix/store", "/nix/store",
		"--ro-bind", "/bin", "/bin", "--ro-bind-try", "/lib", "/lib", "--ro-bind-try", "/lib64", "/lib64",
		"--proc", "/proc", "--dev", "/dev", "--dir", "/run/user", "--bind", dir, dir,
	}
	empty := filepath.Join(t.TempDir(), "empty")
	must.Do(t, os.WriteFile(empty, nil, 0o444))
	for _, name := range hidden {
		must.Write(t, filepath.Join(dir, name), "old secret\n")
		words = append(words, "--ro-bind", empty, filepath.Join(dir, name))
	}
	for _, name := range readOnly {
		must.Write(t, filepath.Join(dir, name), "old\n")
		words = append(words, "--ro-bind", filepath.Join(dir, name), filepath.Join(dir, name))
	}
	cmd := exec.Command(bwrap, append(words, "--remount-ro", "/", "--chdir", dir, "--", "/bin/sh")...)
	one := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: one(os.Getuid()), GidMappings: one(os.Getgid())}
	in, err := cmd.StdinPipe()
	must.Do(t, err)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Skipf("NOT RUN: needs user namespaces: %v", err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	s := &sandbox{t, dir, cmd, in, bufio.NewReader(out)}
	if got := s.sh("echo there"); got != "there\n" {
		t.Skipf("NOT RUN: no sandbox: %s", got)
	}
	return s
}

// sh runs a line inside and gives what it prints.
func (s *sandbox) sh(line string) string {
	s.t.Helper()
	_, err := io.WriteString(s.in, line+"\necho END\n")
	must.Do(s.t, err)
	var said strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if line == "END\n" || err != nil {
			return said.String()
		}
		said.WriteString(line)
	}
}

// replace does as an editor of the host does.
func (s *sandbox) replace(name, content string) {
	s.t.Helper()
	must.Write(s.t, filepath.Join(s.dir, name+".new"), content)
	must.Do(s.t, os.Rename(filepath.Join(s.dir, name+".new"), filepath.Join(s.dir, name)))
}

// until asks again for a while: what is waited for comes from another process.
func (s *sandbox) until(line, want string) {
	s.t.Helper()
	got := ""
	for range 100 {
		if got = s.sh(line); got == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Errorf("inside, %q gives %q, want %q", line, got, want)
}

func nothing(string) ([]byte, error) { return []byte{}, nil }

func (s *sandbox) watch(files ...cover.File) chan string {
	failures := make(chan string, 10)
	for i := range files {
		files[i].Path = filepath.Join(s.dir, files[i].Path)
	}
	w := s.open(files, func(path string, err error) {
		if err != nil {
			failures <- path + ": " + err.Error()
		}
	})
	must.Do(s.t, w.Begin(s.cmd.Process.Pid))
	return failures
}

func (s *sandbox) open(files []cover.File, lost func(path string, err error)) *cover.Watch {
	s.t.Helper()
	w, err := cover.Open(s.dir, files, lost)
	must.Do(s.t, err)
	s.t.Cleanup(w.Close)
	return w
}

func TestTheHostReplacesWhatIsCovered(t *testing.T) {
	s := newSandbox(t, []string{"secret", "config"}, []string{"protected"})
	failures := s.watch(
		cover.File{Path: "secret", Remake: nothing},
		cover.File{Path: "config", Remake: func(string) ([]byte, error) { return []byte("made\n"), nil }},
		cover.File{Path: "protected"},
	)
	for range 3 { // once before the watch has begun
		s.replace("secret", "new secret\n")
		s.replace("config", "new secret\n")
		s.replace("protected", "new\n")
		s.until("cat secret", "")
		s.until("cat config", "made\n")
		s.until("test -w protected || echo closed", "closed\n") // a moment after it was replaced it is open
		s.until("echo evil 2>/dev/null >protected || cat protected", "new\n")
	}
	s.until("rm -f secret config protected 2>/dev/null; ls", "config\nprotected\nsecret\n")
	for range 5 { // a file system may give the new file the number of the old one
		must.Do(t, os.Remove(filepath.Join(s.dir, "secret")))
		s.until("ls", "config\nprotected\n")
		must.Write(t, filepath.Join(s.dir, "secret"), "once more\n")
		s.until("cat secret", "")
	}
	select {
	case text := <-failures:
		t.Error(text)
	default:
	}
	if got, err := os.ReadFile(filepath.Join(s.dir, "secret")); err != nil || string(got) != "once more\n" {
		t.Errorf("on the host: %q, %v", got, err)
	}
	s.until("ls /run/user", "")
}

// TestWithoutAWatchTheSecretIsSeen keeps the test above honest.
func TestWithoutAWatchTheSecretIsSeen(t *testing.T) {
	s := newSandbox(t, []string{"secret"}, []string{"protected"})
	s.replace("secret", "new secret\n")
	s.replace("protected", "new\n")
	s.until("cat secret", "new secret\n")
	s.until("echo evil >protected; cat protected", "evil\n")
}

// Another session exchanged a folder while the sandbox was set up, so that the
// cover went elsewhere: it is missing where it should be.
func TestACoverThatWentElsewhereIsMadeUpFor(t *testing.T) {
	s := newSandbox(t, []string{"other"}, nil)
	must.Write(t, filepath.Join(s.dir, "secret"), "secret\n")
	must.Write(t, filepath.Join(s.dir, "protected"), "old\n")
	failures := s.watch(cover.File{Path: "secret", Remake: nothing}, cover.File{Path: "protected"}, cover.File{Path: "other", Remake: nothing})
	s.until("cat secret", "")
	s.until("test -w protected || cat protected", "old\n")
	s.until("grep -c /other /proc/self/mountinfo", "1\n") // was covered, and is not again
	if len(failures) > 0 {
		t.Error(<-failures)
	}
}

func TestWhatCannotBeCoveredIsSaid(t *testing.T) {
	s := newSandbox(t, []string{"secret"}, nil)
	failures := s.watch(cover.File{Path: "secret", Remake: func(string) ([]byte, error) { return nil, errors.New("no content") }})
	s.replace("secret", "new secret\n")
	select {
	case text := <-failures:
		if text != s.dir+"/secret: no content" {
			t.Error(text)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing is said")
	}
}

// Of short sessions one in a hundred told of a file that nobody had replaced: what a process that is ending shows is no
// proof. What was replaced is still told.
func TestWhatOnlySeemsUncoveredIsNotTold(t *testing.T) {
	s := newSandbox(t, []string{"secret", "other"}, nil)
	defer cover.SeeNothing()()
	told := make(chan string, 10)
	w := s.open([]cover.File{
		{Path: filepath.Join(s.dir, "secret"), Remake: nothing}, {Path: filepath.Join(s.dir, "other"), Remake: nothing},
	}, func(path string, err error) { told <- fmt.Sprint(filepath.Base(path), " ", err) })
	must.Do(t, w.Begin(s.cmd.Process.Pid))
	s.until("grep -c /secret /proc/self/mountinfo", "2\n") // it has looked
	s.replace("other", "new secret\n")
	select {
	case got := <-told:
		if got != "other <nil>" {
			t.Errorf("%s is told", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("what was replaced is not told")
	}
}

// Its process 1 is dead, and bwrap has not noticed yet.
func TestASandboxThatHasEndedIsNotSaidToBeUncovered(t *testing.T) {
	s := newSandbox(t, []string{"secret", "second"}, nil)
	bwrap, failures := s.cmd.Process, make(chan string, 10)
	again := func(string) ([]byte, error) { return nil, errors.New("nobody is there") }
	w := s.open([]cover.File{{Path: s.dir + "/secret", Remake: again}, {Path: s.dir + "/second", Remake: again}},
		func(path string, err error) { failures <- fmt.Sprint(path, ": ", err) })
	must.Do(t, w.Begin(bwrap.Pid))
	must.Do(t, bwrap.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { bwrap.Signal(syscall.SIGCONT) })
	init := proctree.Init(bwrap.Pid)
	must.Do(t, syscall.Kill(init, syscall.SIGKILL))
	for state := byte(0); state != 'Z'; state, _ = proctree.State(init) {
		time.Sleep(time.Millisecond)
	}
	s.replace("secret", "new\n")
	w.Close() // waits until what it sees is looked at
	if len(failures) > 0 {
		t.Error(<-failures)
	}
	late := s.open([]cover.File{{Path: s.dir + "/secret", Remake: nothing}}, func(string, error) {})
	if err := late.Begin(bwrap.Pid); !errors.Is(err, within.ErrGone) {
		t.Errorf("a watch that begins now: %v", err)
	}
}

// TestTheAgentMakesTheCoverBeforeItIsMade: a cover lies in a folder for a
// moment that the agent may write to.
func TestTheAgentMakesTheCoverBeforeItIsMade(t *testing.T) {
	s := newSandbox(t, []string{"secret"}, nil)
	failures := s.watch(cover.File{Path: "secret", Remake: nothing})
	s.sh("(while :; do echo >/run/user/cover; done) 2>/dev/null &")
	s.sh(`perl -e 'while (1) { unlink glob "/run/user/*" }' >/dev/null 2>&1 &`)
	for range 100 {
		s.replace("secret", "new secret\n")
		s.until("cat secret", "")
		if len(failures) > 0 {
			t.Fatal(<-failures)
		}
	}
}

// TestTheAgentMovesTheFolderOfAHiddenFile, so that the user's editor writes the
// next secret into one that is not covered.
func TestTheAgentMovesTheFolderOfAHiddenFile(t *testing.T) {
	for name, at := range map[string]struct{ moved, late string }{
		"the folder": {"conf/deep", "mv conf/deep x; mkdir conf/deep"},
		"one above":  {"conf", "mv conf x; mkdir -p conf/deep"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t, []string{"other"}, nil)
			must.Do(t, os.MkdirAll(filepath.Join(s.dir, "conf/deep"), 0o700))
			must.Write(t, filepath.Join(s.dir, "conf/deep/secret"), "secret\n")
			failures := s.watch(cover.File{Path: "conf/deep/secret", Remake: nothing}, cover.File{Path: "other", Remake: nothing})
			s.replace("other", "secret\n")
			s.until("cat other", "") // the watch has begun
			s.sh(at.late)
			select {
			case text := <-failures:
				if want := s.dir + "/" + at.moved + ": the folder was moved away, and what comes in its place is not covered"; text != want {
					t.Errorf("got %q, want %q", text, want)
				}
			case <-time.After(10 * time.Second):
				t.Error("nothing is said")
			}
		})
	}
}

// A file is gone, or its folder exchanged, while the sandbox waits at its gate: it is not let go.
func TestWhatCannotBeCoveredAtTheGateStopsTheLaunch(t *testing.T) {
	s := newSandbox(t, []string{"secret", "other"}, nil)
	at := s.dir + "/secret"
	cannot := func(string) ([]byte, error) { return nil, errors.New("no content") }
	w := s.open([]cover.File{{Path: at, Remake: cannot}}, func(string, error) {})
	s.replace("secret", "new secret\n")
	if err := w.Begin(s.cmd.Process.Pid); err == nil || err.Error() != at+": no content" {
		t.Errorf("one that is uncovered: %v", err)
	}
	must.Do(t, os.Remove(at))
	w = s.open([]cover.File{{Path: at, Remake: nothing}}, func(string, error) {})
	if err := w.Begin(s.cmd.Process.Pid); err == nil || !strings.Contains(err.Error(), "it is gone") {
		t.Errorf("one that is gone: %v", err)
	}
	w = s.open([]cover.File{{Path: s.dir + "/other", Remake: nothing}}, func(string, error) {})
	must.Do(t, w.Begin(s.cmd.Process.Pid))
}

// The host removes a folder with a hidden file, and makes it again.
func TestAFolderThatTheHostMakesAnewIsWatchedAnew(t *testing.T) {
	s := newSandbox(t, nil, nil)
	must.Do(t, os.MkdirAll(s.dir+"/conf/deep", 0o700))
	must.Write(t, s.dir+"/conf/deep/secret", "")
	failures := s.watch(cover.File{Path: "conf/deep/secret", Remake: nothing})
	for range 3 {
		must.Do(t, os.RemoveAll(s.dir+"/conf"))
		must.Do(t, os.MkdirAll(s.dir+"/conf/deep", 0o700))
		must.Write(t, s.dir+"/conf/deep/secret", "new secret\n")
		s.until("cat conf/deep/secret", "")
	}
	if len(failures) > 0 {
		t.Error(<-failures)
	}
}

func TestAFolderThatTheHostReplaces(t *testing.T) {
	s := newSandbox(t, nil, nil)
	made := func() {
		for _, name := range []string{"hidden", "hooks"} {
			must.Do(t, os.RemoveAll(filepath.Join(s.dir, name)))
			must.Do(t, os.Mkdir(filepath.Join(s.dir, name), 0o700))
			must.Write(t, filepath.Join(s.dir, name, "x"), "x\n")
		}
	}
	made()
	s.watch(cover.File{Path: "hidden", Folder: true, Remake: nothing}, cover.File{Path: "hooks", Folder: true})
	for range 3 {
		s.until("ls hidden", "")
		s.until("echo evil 2>/dev/null >hooks/y || cat hooks/x", "x\n")
		made()
	}
}
