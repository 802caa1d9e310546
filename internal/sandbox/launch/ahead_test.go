package launch

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// waitingBwrap is a program that does with its words what bwrap does: it waits
// for the end of the first file, and then reads the second. It reports them.
const waitingBwrap = "#!/bin/sh\nread -r none <&3\nwhile read -r line; do echo \"$line\"; done </proc/self/fd/$4 >&4\n"

// begun is a launch with a bwrap that was begun ahead of it: one that has a
// file in memory and a folder of the host.
func begun(t *testing.T) (l Launch, list []Descriptor, folder string) {
	t.Helper()
	folder = t.TempDir() + "/project"
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	l = Launch{Bwrap: filepath.Join(t.TempDir(), "bwrap"), Tier: "none", OwnPIDs: true, Command: []string{"agent", "word"}, Request: []string{"word"}}
	write(t, l.Bwrap, waitingBwrap, 0o755)
	list = []Descriptor{{Name: "made", Data: []byte("made")}, {Name: "project", Path: folder}}
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	l.Ahead = Begin(Needs{Program: l.Bwrap, Tier: l.Tier, Command: []string{"agent"}, Files: []string{"", folder}}, l.Request)
	if l.Ahead == nil {
		t.Fatal("none was begun")
	}
	t.Cleanup(l.Ahead.Discard)
	return l, list, folder
}

func gone(pid int) bool {
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestABwrapBegunAheadGetsTheWordsWholeAndLast(t *testing.T) {
	l, list, _ := begun(t)
	fds, ahead, err := l.open(list)
	if err != nil || ahead == nil {
		t.Fatalf("it is not taken: %v", err)
	}
	fds.close()
	child, err := ahead.release([]byte("--these\n--words\n"), nil, &Post{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(child.status)
	if string(text) != "--these\n--words\n" || err != nil {
		t.Errorf("it got %q, %v", text, err)
	}
	child.status.Close()
	if _, err := child.reap(); err != nil {
		t.Error(err)
	}
}

// Between its beginning and its words everything may change: by an agent of
// another session, or by the user.
func TestABwrapBegunAheadForAnotherLaunchIsKilled(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, l *Launch, list *[]Descriptor, folder string){
		"the folder was swapped for another": func(t *testing.T, _ *Launch, _ *[]Descriptor, folder string) {
			if err := errors.Join(os.Rename(folder, folder+"-old"), os.Mkdir(folder, 0o755)); err != nil {
				t.Fatal(err)
			}
		},
		"another folder is mounted": func(_ *testing.T, _ *Launch, list *[]Descriptor, folder string) {
			(*list)[1].Path = filepath.Dir(folder)
		},
		"one file more is handed over": func(_ *testing.T, _ *Launch, list *[]Descriptor, _ string) {
			*list = append(*list, Descriptor{Name: "more"})
		},
		"one file less is handed over": func(_ *testing.T, _ *Launch, list *[]Descriptor, _ string) { *list = (*list)[:1] },
		"what was made is now a file": func(_ *testing.T, _ *Launch, list *[]Descriptor, folder string) {
			(*list)[0] = Descriptor{Name: "made", Path: folder}
		},
		"another agent runs":    func(_ *testing.T, l *Launch, _ *[]Descriptor, _ string) { l.Command = []string{"other", "word"} },
		"with other words":      func(_ *testing.T, l *Launch, _ *[]Descriptor, _ string) { l.Command = []string{"agent", "other"} },
		"in another tier":       func(_ *testing.T, l *Launch, _ *[]Descriptor, _ string) { l.Tier = "full" },
		"by another bwrap":      func(_ *testing.T, l *Launch, _ *[]Descriptor, _ string) { l.Bwrap += "-other" },
		"mounts are to be laid": func(_ *testing.T, l *Launch, _ *[]Descriptor, _ string) { l.Lay = true },
		"a tree is to be made":  func(_ *testing.T, l *Launch, _ *[]Descriptor, _ string) { l.Closure = []string{"/nix/store/x"} },
	} {
		t.Run(name, func(t *testing.T) {
			l, list, folder := begun(t)
			change(t, &l, &list, folder)
			fds, ahead, err := l.open(list)
			if err != nil || ahead != nil || len(fds) != len(list) {
				t.Errorf("%d descriptors, %v, error %v", len(fds), ahead, err)
			}
			fds.close()
			if !gone(l.Ahead.pid) {
				t.Error("it is still there")
			}
		})
	}
}

func TestALinkPutInTheFoldersPlaceIsNotFollowed(t *testing.T) {
	l, list, folder := begun(t)
	if err := errors.Join(os.Rename(folder, folder+"-old"), os.Symlink(folder+"-old", folder)); err != nil {
		t.Fatal(err)
	}
	fds, ahead, err := l.open(list)
	if err == nil || !strings.Contains(err.Error(), "symbolic link") || ahead != nil || fds != nil || !gone(l.Ahead.pid) {
		t.Errorf("%v, %v, error %v", fds, ahead, err)
	}
}

func TestNothingIsBegunWhereItCannotBe(t *testing.T) {
	bwrap := filepath.Join(t.TempDir(), "bwrap")
	write(t, bwrap, waitingBwrap, 0o755)
	setuid := filepath.Join(t.TempDir(), "bwrap")
	write(t, setuid, waitingBwrap, 0o755|os.ModeSetuid)
	for name, a := range map[string]*Ahead{
		"a file that is gone": Begin(Needs{Program: bwrap, Tier: "none", Files: []string{t.TempDir() + "/absent"}}, nil),
		"a setuid bwrap":      Begin(Needs{Program: setuid, Tier: "none"}, nil),
		"no bwrap":            Begin(Needs{Tier: "none"}, nil),
	} {
		if a != nil {
			t.Errorf("%s: one was begun", name)
			a.Discard()
		}
	}
	(*Ahead)(nil).Discard()
}
