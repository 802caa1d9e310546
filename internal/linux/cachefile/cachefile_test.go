package cachefile_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"claudebox/internal/linux/cachefile"
)

func TestWhatAKilledWriterLeftGoesWithTheNextWriting(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cache")
	left, other := fmt.Sprint(file, ".", ended.Process.Pid), fmt.Sprint(file, ".", os.Getppid())
	for _, name := range []string{left, other} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cachefile.Write(file, []byte("x"))
	if _, err := os.Stat(left); err == nil {
		t.Error("what a killed writer left is there")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("what another writes was taken away")
	}
}
