package cachefile_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/cachefile"
)

func TestWhatAKilledWriterLeftGoesWithTheNextWriting(t *testing.T) {
	ended := exec.Command("true")
	must.Do(t, ended.Run())
	file := filepath.Join(t.TempDir(), "cache")
	left, other := fmt.Sprint(file, ".", ended.Process.Pid), fmt.Sprint(file, ".", os.Getppid())
	for _, name := range []string{left, other} {
		must.Write(t, name, "")
	}
	cachefile.Write(file, []byte("x"))
	if _, err := os.Stat(left); err == nil {
		t.Error("what a killed writer left is there")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("what another writes was taken away")
	}
}

// What is kept decides on what an agent sees: another user has no say in it.
func TestWhatOthersMayWriteIsNotFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache")
	cachefile.Keep(file, "kept")
	var got string
	if !cachefile.Find(file, &got) || got != "kept" {
		t.Fatalf("found %q", got)
	}
	for _, mode := range []os.FileMode{0o620, 0o602} {
		must.Do(t, os.Chmod(file, mode))
		if cachefile.Find(file, &got) {
			t.Errorf("found in a file of mode %o", mode)
		}
	}
	if os.Getuid() != 0 {
		return // what follows gives the file away
	}
	must.Do(t, os.Chmod(file, 0o600), os.Chown(file, 1, 1))
	if cachefile.Find(file, &got) {
		t.Error("found in a file of another user")
	}
}

// Two sessions may have the same process number, each in a container of its own, and write the same temporary file.
func TestWhatTwoWriteAtOnceIsFoundWholeOrNotAtAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache")
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			for range 50 {
				cachefile.Keep(file, strings.Repeat(fmt.Sprint(n), 10_000*(n+1)))
			}
		})
	}
	for range 200 {
		var got string
		if cachefile.Find(file, &got) && strings.Trim(got, got[:1]) != "" {
			t.Error("parts of two were found")
		}
	}
	writers.Wait()
}
