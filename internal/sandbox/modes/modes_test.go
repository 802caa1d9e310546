package modes

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
)

// An agent can make any number of folders that are mounted: 20,000 repositories left no descriptor for the launch.
func TestModesOfWhatIsMountedInAFolderAreGivenBackAndNeedNoDescriptors(t *testing.T) {
	const many = 300
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		must.Do(t, err)
		return len(list)
	}
	top := t.TempDir()
	inner := filepath.Join(top, "a")
	l := launch.Launch{Mounts: []launch.Mount{{Kind: plan.Bind, Source: top}, {Kind: plan.Bind, Source: inner}}}
	for n := range many {
		dir := filepath.Join(inner, fmt.Sprint(n))
		must.Do(t, os.MkdirAll(dir, 0o755))
		l.Mounts = append(l.Mounts, launch.Mount{Kind: plan.Bind, Source: dir})
	}
	before := open()
	modes := Note(l)
	if more := open() - before; len(modes) != many+2 || more > 4 {
		t.Errorf("%d modes, %d more descriptors", len(modes), more)
	}
	changed := map[string]os.FileMode{filepath.Join(inner, "7"): 0, filepath.Join(inner, "8"): 0o777, inner: 0, top: 0}
	for _, dir := range []string{filepath.Join(inner, "7"), filepath.Join(inner, "8"), inner, top} {
		must.Do(t, os.Chmod(dir, changed[dir]))
	}
	var said bytes.Buffer
	Mend(modes, &said)
	for dir := range changed {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 || said.Len() > 0 {
			t.Errorf("%s: %v, %v; %s", dir, info, err, &said)
		}
	}
}

// The command that the remedy names gives a mode back that claudebox could not.
func TestTheRemedyForAModeWorks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	must.Write(t, file, "")
	var said bytes.Buffer
	Mend([]File{{path: file, fd: -1, mode: 0o640}}, &said)
	_, command, _ := strings.Cut(strings.TrimSpace(said.String()), "remedy: ")
	if command != "chmod 640 "+file {
		t.Fatalf("%s", &said)
	}
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
}
