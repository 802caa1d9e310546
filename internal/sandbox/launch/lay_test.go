package launch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/seccomp"
	"claudebox/internal/sandbox/storetree"
)

func TestWhatIsLaid(t *testing.T) {
	in := Place{Root: "/home/u/src/p", Path: ".git/config"}
	const at = "/home/u/src/p/.git/config"
	for name, tc := range map[string]struct {
		m    Mount
		want bool
	}{
		"a pinned folder":                      {Mount{Kind: plan.Bind, Source: at, Destination: at, Open: true, Point: in}, true},
		"a read-only file":                     {Mount{Kind: plan.ROBind, Source: at, Destination: at, Open: true, Point: in}, true},
		"a cover":                              {Mount{Kind: plan.ROData, Destination: at, Point: in}, true},
		"what comes from elsewhere":            {Mount{Kind: plan.ROBind, Source: "/home/u/x", Destination: at, Open: true, Point: in}, false},
		"what lies in no folder of the host":   {Mount{Kind: plan.ROBind, Source: at, Destination: at, Open: true}, false},
		"what lies in a folder of another":     {Mount{Kind: plan.ROBind, Source: at, Destination: at, Open: true, Point: Place{Root: "/other", Path: ".git/config"}}, false},
		"a made file that bwrap makes":         {Mount{Kind: plan.File, Destination: at, Point: in}, false},
		"a store path, which nobody can write": {Mount{Kind: plan.ROBind, Source: at, Destination: at, Point: in}, false},
	} {
		if got := (Launch{}).lays(tc.m); got != tc.want {
			t.Errorf("%s is laid: %t", name, got)
		}
	}
}

// over is a project of which four places are covered, pinned or read-only; bwrap
// mounts something below one of them.
func over(dir string) []Mount {
	list := []Mount{{Kind: plan.Tmpfs, Destination: "/"}}
	for _, system := range []string{"/usr", "/bin", "/lib", "/lib64", "/nix/store"} { // what there is of them
		if _, err := os.Stat(system); err == nil {
			list = append(list, Mount{Kind: plan.ROBind, Source: system, Destination: system})
		}
	}
	list = append(list, []Mount{
		{Kind: plan.Dev, Destination: "/dev"},
		{Kind: plan.Dir, Destination: "/run/user"},
		{Kind: plan.Bind, Source: dir, Destination: dir, Open: true},
		{Kind: plan.ROData, Destination: dir + "/.env", Data: []byte("made\n")},
		{Kind: plan.Bind, Source: dir + "/.git", Destination: dir + "/.git", Open: true},
		{Kind: plan.ROData, Destination: dir + "/.git/config", Data: []byte("made\n")},
		{Kind: plan.ROBind, Source: dir + "/.git/hooks", Destination: dir + "/.git/foreign", Open: true}, // by bwrap
		{Kind: plan.ROBind, Source: dir + "/.git/hooks", Destination: dir + "/.git/hooks", Open: true},
	}...)
	list, err := place(list)
	if err != nil {
		panic(err)
	}
	return list
}

// TestMain is also the stage that becomes bwrap, where /proc shows no process 2.
func TestMain(m *testing.M) {
	if status, ran := storetree.Run(os.Args); ran {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// waiting starts a sandbox that runs a line of shell as soon as it may, for
// every bwrap that can be had: that on PATH, and those of other Debians.
func waiting(t *testing.T, line string, do func(t *testing.T, l Launch, dir string, child *sandbox)) {
	own, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("NOT RUN: needs bwrap on PATH")
	}
	others, err := filepath.Glob(filepath.Join(os.Getenv("CLAUDEBOX_LAB_RELEASES"), "*/moved/bwrap"))
	if err != nil || os.Getenv("CLAUDEBOX_LAB_RELEASES") == "" {
		others = nil
	}
	for _, bwrap := range append(others, own) {
		version, err := AskBwrap(bwrap)
		must.Do(t, err)
		t.Run("bwrap "+version.Version, func(t *testing.T) { runWaiting(t, bwrap, line, do) })
	}
}

func runWaiting(t *testing.T, bwrap, line string, do func(t *testing.T, l Launch, dir string, child *sandbox)) {
	dir := must.Folder(t)
	for _, name := range []string{".env", ".git/config", ".git/hooks/old", ".git/foreign/under"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)
		must.Write(t, filepath.Join(dir, name), "user's\n")
	}
	l := Launch{
		Setting: Setting{Bwrap: bwrap, Dir: dir, Seccomp: seccomp.Filter()},
		Tier:    "full", Mounts: over(dir),
		Command: []string{"/bin/sh", "-c", "PATH='" + os.Getenv("PATH") + "'\n" + line},
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	do(t, l, dir, started(t, l))
}

func started(t *testing.T, l Launch) *sandbox {
	t.Helper()
	runtime.LockOSThread()
	lines, descriptors, err := l.Words()
	must.Do(t, err)
	fds, err := Runner{Launch: l}.open(descriptors)
	must.Do(t, err)
	child, err := (Runner{Launch: l, Signals: &Signals{}}).start([]int{0, 1, 2}, arguments(lines), fds)
	if err != nil {
		t.Skip("NOT RUN: needs user namespaces: ", err)
	}
	return child
}

// end ends a sandbox that waits.
func (s *sandbox) end() {
	syscall.Kill(s.pid, syscall.SIGKILL)
	s.reap()
}

// awaitGate returns when bwrap has made its own mounts and waits.
func awaitGate(t *testing.T, child *sandbox) {
	t.Helper()
	poll := []unix.PollFd{{Fd: int32(child.gate.bell.Fd())}}
	must.Do(t, uninterrupted(func() error { _, err := unix.Poll(poll, -1); return err }))
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

func TestAllIsLaidWhenTheAgentBegins(t *testing.T) {
	waiting(t, `{ cat .env .git/config; cat .git/hooks/old .git/foreign/old; echo x >.env; echo x >.git/config; echo x >.git/hooks/new; mv .git other; rm -r .git/hooks
		touch .git/index && echo written; } >seen 2>/dev/null`, func(t *testing.T, l Launch, dir string, child *sandbox) {
		must.Do(t, (Runner{Launch: l}).connect(child))
		must.Do(t, child.wait())
		if got, want := content(t, dir+"/seen"), "made\nmade\nuser's\nuser's\nwritten\n"; got != want {
			t.Errorf("the agent saw %q, want %q", got, want)
		}
		for _, name := range []string{".env", ".git/config", ".git/hooks/old"} {
			if got := content(t, filepath.Join(dir, name)); got != "user's\n" {
				t.Errorf("%s holds %q", name, got)
			}
		}
		if content(t, dir+"/.git/hooks/new") != "" {
			t.Error("the agent made a hook")
		}
	})
}

// Whoever kills claudebox while the sandbox waits lets nothing run that is not
// protected.
//
// Promise: what cannot be set up stops the launch.
func TestClaudeboxDiesBeforeTheMountsAreLaid(t *testing.T) {
	waiting(t, "touch ran", func(t *testing.T, l Launch, dir string, child *sandbox) {
		must.Do(t, child.gate.reached())
		child.gate.outside.Close()
		err := child.wait()
		if _, ran := os.Stat(dir + "/ran"); ran == nil || err == nil {
			t.Errorf("the agent ran (%v)", err)
		}
	})
}

// Another session moves something away, and puts something of its own in its
// place, after claudebox has looked at it.
func TestAProtectedPlaceIsExchangedDuringTheLaunch(t *testing.T) {
	for name, tc := range map[string]struct {
		exchange func(dir string) error
		want     string
	}{
		"the git folder for a copy": {
			func(dir string) error {
				return errors.Join(os.Rename(dir+"/.git", dir+"/old"), os.CopyFS(dir+"/.git", os.DirFS(dir+"/old")))
			},
			"/.git: it was exchanged",
		},
		"a place in it for a link": {
			func(dir string) error {
				return errors.Join(os.Rename(dir+"/.git/hooks", dir+"/old"), os.Symlink("../old", dir+"/.git/hooks"))
			},
			"/.git/hooks: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			waiting(t, "touch ran", func(t *testing.T, l Launch, dir string, child *sandbox) {
				list, err := l.layList()
				must.Do(t, err)
				awaitGate(t, child)
				must.Do(t, tc.exchange(dir))
				err = prepare(nil, list, child)
				if err == nil || !strings.Contains(err.Error(), "protect "+dir+tc.want) || !errors.Is(err, ErrAgain) {
					t.Errorf("got %v", err)
				}
				child.end()
				if tc.want != "/.git: it was exchanged" {
					return
				}
				if diag.Remedy(err) != diag.StartAgain {
					t.Errorf("remedy %q", diag.Remedy(err))
				}
				again := started(t, l)
				if list, err = l.layList(); err == nil {
					awaitGate(t, again)
					err = prepare(nil, list, again)
				}
				if err != nil {
					t.Errorf("started again: %v", err)
				}
				again.end()
			})
		})
	}
}

func TestWhatIsLaidIsShown(t *testing.T) {
	list := over("/p")
	text, err := Launch{Setting: Setting{Bwrap: "/bwrap"}, Mounts: list}.Argv()
	must.Do(t, err)
	words, shown, _ := strings.Cut(text, "\n-- ")
	expect.Contains(t, shown, "#   --bind /p/.git /p/.git\n", "#   --ro-bind-data (made, 5 bytes) /p/.git/config\n", "#   --ro-bind /p/.git/hooks /p/.git/hooks\n")
	for _, name := range []string{"/p/.env\n", "/p/.git\n", "/p/.git/config\n", "/p/.git/hooks\n"} {
		if strings.Contains(words, " "+name) {
			t.Errorf("bwrap mounts %s, too:\n%s", name, words)
		}
	}
	script, err := Launch{Setting: Setting{Bwrap: "/bwrap", Bash: "/bash"}, Mounts: list}.Script()
	must.Do(t, err)
	if !strings.Contains(script, " /p/.git/hooks") || strings.Contains(script, "--block-fd") {
		t.Errorf("the script, which cannot lay mounts, has not all words:\n%s", script)
	}
}
