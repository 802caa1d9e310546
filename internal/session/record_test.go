package session

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// A process inside has megabytes of words, and there are thousands of them: claudebox, outside, kept them all.
func TestARecordKeepsLittleOfACommandLine(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "record"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("sleep", append([]string{"60"}, strings.Split(strings.Repeat(strings.Repeat("0", 1000)+" ", 500), " ")[:500]...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	known := map[int][]byte{}
	c := recorder{file: file}
	c.look(os.Getpid(), known)
	if line := known[cmd.Process.Pid]; len(line) == 0 || len(line) > longestLine {
		t.Errorf("%d bytes of a command line are kept", len(line))
	}
}

// An agent wrote its own lines into the record of its session, which lay in a folder that it was given.
func TestALogWhereTheAgentWritesIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(dir+"/data/sub", 0o700), os.Mkdir(dir+"/read", 0o700), os.Symlink("data/sub", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	for file, refused := range map[string]bool{"data/a": true, "data/sub/a": true, "link/a": true, "read/a": false, "a": false} {
		for _, which := range []string{"record", "network log"} {
			r := running{Session: &Session{}}
			r.Launch.Mounts = []launch.Mount{{Kind: plan.Bind, Source: dir + "/data"}, {Kind: plan.ROBind, Source: dir + "/read"}}
			r.project.Path = "/project"
			if r.options.Record = dir + "/" + file; which == "network log" {
				r.options.Record, r.options.NetworkLog = "", dir+"/"+file
			}
			if err := r.openRecord(); (err != nil) != refused {
				t.Errorf("%s in %s: %v", which, file, err)
			}
		}
	}
}
