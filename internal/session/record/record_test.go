package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
)

// A process inside has megabytes of words, and there are thousands of them: claudebox, outside, kept them all.
func TestARecordKeepsLittleOfACommandLine(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "record"))
	must.Do(t, err)
	defer file.Close()
	cmd := exec.Command("sleep", append([]string{"60"}, strings.Split(strings.Repeat(strings.Repeat("0", 1000)+" ", 500), " ")[:500]...)...)
	must.Do(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	known := map[int][]byte{}
	c := Recorder{file: file}
	for len(known[cmd.Process.Pid]) == 0 { // a program that just begins has none yet; that is looked at again
		c.look(os.Getpid(), known)
	}
	if line := known[cmd.Process.Pid]; len(line) == 0 || len(line) > longestLine {
		t.Errorf("%d bytes of a command line are kept", len(line))
	}
}
