package start_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"claudebox/internal/cli/start"
)

// asSmall makes this test be the small program.
const asSmall = "CLAUDEBOX_TEST_SMALL"

func TestMain(m *testing.M) {
	if os.Getenv(asSmall) != "" {
		os.Exit(start.Main(os.Args, start.FromOS(), start.ByPlan))
	}
	os.Exit(m.Run())
}

// install puts the small program into a folder, and a script in the place of the
// whole one; an empty script leaves it out.
func install(t *testing.T, script string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder+"/bin/claudebox", string(program))
	if script != "" {
		write(t, folder+"/libexec/claudebox", "#!/bin/sh\n"+script)
	}
	return folder
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// sh runs a script in a folder, whose home is empty.
func sh(t *testing.T, folder, script string, words ...string) (output string, status int) {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, words...)...)
	cmd.Dir, cmd.Env = folder, []string{asSmall + "=1", "HOME=" + home, "PATH=/usr/bin:/bin"}
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("made in the home: %v, %v", left, err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

func TestWhatIsNoLaunchByAPlanIsLeftToTheWholeProgram(t *testing.T) {
	folder := install(t, `printf '%s|' "$@"; exit 7`)
	lines := []string{
		"version", "plan --format json", "shell -- true", "help", "completion bash", "__complete x", // commands
		"--version", "-h", "--claudebox-help", "--claudebox-version", "--check -y",
	}
	if os.Getuid() != 0 { // whom no launch is made for
		lines = append(lines, "", "-y -p hello", "--dry-run", "-P ./none.yaml -y -- a b", "-P none")
	}
	for _, line := range lines {
		words := strings.Fields(line)
		got, status := sh(t, folder, `exec bin/claudebox "$@"`, words...)
		if want := strings.Join(append(words, ""), "|"); len(words) > 0 && got != want || status != 7 {
			t.Errorf("claudebox %s: status %d, whole program got %q", line, status, got)
		}
	}
}

func TestAWrongLineIsRefusedAtOnce(t *testing.T) {
	got, status := sh(t, install(t, "exit 7"), "exec bin/claudebox fix --network full")
	if status != 125 || !strings.Contains(got, "--network must stand before") {
		t.Errorf("status %d: %s", status, got)
	}
}

// What the caller set up reaches the whole program as it would have without the
// small one before it. Package syscall raises the limit of open files.
func TestTheWholeProgramFindsWhatTheCallerSetUp(t *testing.T) {
	for name, tc := range map[string]struct{ caller, whole, want string }{
		"the limit of open files": {"ulimit -Sn 123", "ulimit -Sn", "123\n"},
		"an ignored signal":       {"trap '' INT", "trap - INT; kill -INT $$; echo alive", "alive\n"},
		"no signal is blocked":    {":", "grep SigBlk /proc/self/status", "SigBlk:\t0000000000000000\n"},
		"descriptors stay out":    {"exec 7</dev/null", "[ -e /proc/$$/fd/7 ] || echo closed", "closed\n"},
		"a closed standard input": {"exec 0<&-", "readlink /proc/$$/fd/0", "/dev/null\n"},
		"the environment":         {"export COLOUR=red", "echo $COLOUR", "red\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, status := sh(t, install(t, tc.whole), tc.caller+"\nexec bin/claudebox version"); got != tc.want || status != 0 {
				t.Errorf("status %d, got %q, want %q", status, got, tc.want)
			}
		})
	}
}

func TestTheWholeProgramIsFoundHoweverTheSmallOneIsReached(t *testing.T) {
	for _, way := range []string{
		"$PWD/bin/claudebox version", "cd bin && ./claudebox version", "PATH=$PWD/bin claudebox version",
		"ln -s bin/claudebox here; ./here version", "mkdir x; ln -s ../here x/y; ln -s bin/claudebox here; cd x && ./y version",
		"(exec -a other bin/claudebox version) 2>/dev/null || bin/claudebox version",
	} {
		if got, status := sh(t, install(t, `echo "whole $*"`), way); got != "whole version\n" || status != 0 {
			t.Errorf("%s: status %d, %s", way, status, got)
		}
	}
}

func TestAMissingWholeProgramIsNamed(t *testing.T) {
	folder := install(t, "")
	got, status := sh(t, folder, "exec bin/claudebox version")
	if status != 125 || !strings.Contains(got, folder+"/libexec/claudebox: no such file") || !strings.Contains(got, "remedy: ") {
		t.Errorf("status %d: %s", status, got)
	}
}
