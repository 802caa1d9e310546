package timerslack_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const flag = "-E=claudebox_entry"

// probe builds a program that begins here, or where programs of Go begin, and
// runs it by a caller with a slack of 70 µs.
func probe(t *testing.T, flags string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "probe")
	build := exec.Command("go", "build", "-ldflags="+flags, "-o", program, "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with this test
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 70_000, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestThreadsSleepLongerAndWhatIsStartedDoesNot(t *testing.T) {
	if got, want := probe(t, flag), "70000 1000000 70000\n"; got != want {
		t.Errorf("at its start, then, restored: %q, want %q", got, want)
	}
}

func TestWithoutTheLinkersFlagNothingIsChanged(t *testing.T) {
	if got, want := probe(t, ""), "0 70000 70000\n"; got != want {
		t.Errorf("at its start, then, restored: %q, want %q", got, want)
	}
}

func TestTheFlagIsWhereClaudeboxIsBuilt(t *testing.T) {
	text, err := os.ReadFile("../../../nix/package.nix")
	if err != nil || !strings.Contains(string(text), `"`+flag+`"`) {
		t.Errorf("nix/package.nix has no %s: %v", flag, err)
	}
}
