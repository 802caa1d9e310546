package smallfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

func TestReadTakesAFileWhole(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 513, 100_000} {
		name := filepath.Join(t.TempDir(), "file")
		want := strings.Repeat("x", size)
		must.Write(t, name, want)
		got, err := Read(name, int64(size))
		if err != nil || string(got) != want {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
		if _, err := Read(name, int64(size)-1); size > 0 && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes with a limit of one less: %v", size, err)
		}
	}
}

func TestReadTakesWhatHasNoSize(t *testing.T) {
	want, err := os.ReadFile("/proc/self/mountinfo")
	must.Do(t, err)
	got, err := Read("/proc/self/mountinfo", 1<<20)
	if err != nil || string(got) != string(want) {
		t.Errorf("got %d bytes, want %d, %v", len(got), len(want), err)
	}
}

// A pipe would be waited for, a device has no end.
func TestReadRefusesWhatIsNoFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, unix.Mkfifo(pipe, 0o600))
	for _, name := range []string{pipe, "/dev/zero", t.TempDir()} {
		if _, err := Read(name, 1<<20); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "gone"), 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
