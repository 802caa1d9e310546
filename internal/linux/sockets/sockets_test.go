package sockets

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// In a folder whose path is too long for an address, the socket of a program that lives stays, and so does what is none.
func TestOnlySocketsThatWereLeftAreRemoved(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	must.Do(t, os.Mkdir(long, 0o700))
	open := func() *os.File {
		dir, err := os.Open(long)
		must.Do(t, err)
		t.Cleanup(func() { dir.Close() })
		return dir
	}
	for _, name := range []string{"s.lives", "s.left", "other"} {
		l, err := Listen(open(), name)
		must.Do(t, err)
		if name == "s.lives" {
			defer l.Close()
		} else {
			l.Close()
		}
	}
	must.Write(t, filepath.Join(long, "s.file"), "")
	RemoveLeft(open(), func(name string) bool { return strings.HasPrefix(name, "s.") })
	names, err := open().Readdirnames(-1)
	slices.Sort(names)
	if want := []string{"other", "s.file", "s.lives"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v; want %q", names, err, want)
	}
}

// Another session began in the moment between the making of a socket and the first listening: it took the socket away.
func TestASocketOfAProcessThatRunsIsNotOfOneThatEnded(t *testing.T) {
	ended := exec.Command("true")
	must.Do(t, ended.Run())
	chosen := OfEnded("why.")
	for name, want := range map[string]bool{
		fmt.Sprint("why.", os.Getpid()): false, fmt.Sprint("why.", ended.Process.Pid): true, "ssh.1": false, "why.x": true,
	} {
		if got := chosen(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
