package launch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
)

// fakeBwrap is a program that answers as a bwrap does.
func fakeBwrap(t *testing.T, version string, options []string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bwrap")
	script := "#!/bin/sh\nPATH='" + os.Getenv("PATH") + "'\ncase $1 in\n--version) echo bubblewrap " + version + " ;;\n--help) cat <<'END'\nusage: bwrap\n\n    " +
		strings.Join(options, " VALUE   Words\n    ") + "\nEND\n;; esac\n"
	write(t, file, script, 0o755)
	return file
}

func write(t *testing.T, file, content string, mode os.FileMode) {
	t.Helper()
	must.Write(t, file, content)
	err := os.Chmod(file, mode)
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("SKIPPED: %v, as in a build of Nix", err)
	}
	must.Do(t, err)
}

func TestBwrapIsLookedAtBeforeEachLaunch(t *testing.T) {
	for name, tc := range map[string]struct {
		mode os.FileMode
		want string // part of the error; empty: none
	}{
		"a program will do":             {0o755, ""},
		"a setuid one is refused":       {0o755 | os.ModeSetuid, "setuid"},
		"a setgid one is refused":       {0o755 | os.ModeSetgid, "setuid"},
		"what cannot be run is refused": {0o644, "not a program"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "bwrap")
			write(t, file, "", tc.mode)
			err := CheckBwrap(file)
			wantError(t, err, tc.want)
			if tc.want != "setuid" {
				return
			}
			_, command, _ := strings.Cut(diag.Remedy(err), "; or run `sudo ")
			if out, err := exec.Command("sh", "-c", strings.TrimSuffix(command, "`")).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			wantError(t, CheckBwrap(file), "")
		})
	}
	wantError(t, CheckBwrap(t.TempDir()), "not a program")
	wantError(t, CheckBwrap(t.TempDir()+"/absent"), "no such file")
	wantError(t, CheckBwrap(""), "names none")
}

// A sandbox that hangs ends, and is said to have hung, whether or not bwrap has reported that it runs or the program
// inside has printed something.
func TestTrialOfASandboxThatHangs(t *testing.T) {
	for _, before := range []string{"", "echo '{}' >&4\n", "echo '{}' >&4; echo PWD=/\n"} {
		bwrap := filepath.Join(t.TempDir(), "bwrap")
		write(t, bwrap, "#!/bin/sh\nPATH='"+os.Getenv("PATH")+"'\n"+before+"exec sleep 5\n", 0o755)
		err := Trial{Bwrap: bwrap, Shim: "/bin/true", Tier: "full"}.within(200 * time.Millisecond)
		wantError(t, err, "start an empty sandbox: it did not end within 200ms, and was killed")
	}
}

// wantError fails unless err holds want and names a remedy; an empty want is no
// error.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("got %v; want no error", err)
		}
		return
	}
	var known *diag.Error
	if !errors.As(err, &known) || !strings.Contains(err.Error(), want) || known.Remedy == "" {
		t.Errorf("got %v; want %q and a remedy", err, want)
	}
}

func TestALostBwrapOfTheStoreIsFetchedAgain(t *testing.T) {
	const path = "/nix/store/00000000000000000000000000000000-bubblewrap-0.12.0"
	var known *diag.Error
	if err := CheckBwrap(path + "/bin/bwrap"); !errors.As(err, &known) || !strings.Contains(known.Remedy, "--realise "+path+"`") {
		t.Errorf("got %v with remedy %q; want the command for %s", err, known.Remedy, path)
	}
}

func TestOldBwrapsAreToldFromNewOnes(t *testing.T) {
	for name, tc := range map[string]struct {
		version string
		options []string
		want    string
	}{
		"a new one will do":                   {"0.12.0", options, ""},
		"the oldest with newer options, too":  {"0.8.0", options, ""},
		"below that it is refused":            {"0.7.0", options, "too old"},
		"the second number counts as a whole": {"0.10.1", options, ""},
		"a lack of options is named":          {"0.9.0", slices.DeleteFunc(slices.Clone(options), func(o string) bool { return o == "--bind-fd" }), "no --bind-fd"},
		"an unknown version is old":           {"unknown", options, "too old"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := AskBwrap(fakeBwrap(t, tc.version, tc.options))
			must.Do(t, err)
			wantError(t, b.Suits(), tc.want)
		})
	}
}

func TestVersionsAreComparedByTheirNumbers(t *testing.T) {
	for version, want := range map[string]bool{"0.11.2": true, "0.12": false, "0.12.0": false, "1.0": false, "0.9": true, "": true} {
		if got := (Bwrap{Version: version}).Before(SafeBwrap); got != want {
			t.Errorf("%q before %s: got %v", version, SafeBwrap, got)
		}
	}
}

func TestABwrapThatDoesNotAnswerIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bwrap")
	write(t, file, "#!/bin/sh\necho broken >&2\nexit 3\n", 0o755)
	_, err := AskBwrap(file)
	wantError(t, err, "broken")
}

// Whatever a launch says to bwrap is asked for beforehand.
func TestEveryOptionOfALaunchIsAskedFor(t *testing.T) {
	p := aPlan(usual...)
	p.Network.Tier = "none"
	lines, _, err := bind(t, p, aHost()).Words()
	must.Do(t, err)
	l := bind(t, p, aHost())
	for _, word := range append(flat(lines), l.commandLine()[1]) {
		if strings.HasPrefix(word, "--") && !slices.Contains(options, word) {
			t.Errorf("%s is used and not asked for", word)
		}
	}
}

// flat leaves out the values of variables.
func flat(lines []Line) []string {
	var list []string
	for _, line := range lines {
		for _, w := range line {
			if line[0].Text != "--setenv" || w.Text == "--setenv" {
				list = append(list, w.Text)
			}
		}
	}
	return list
}

func TestTheReasonOfForbiddenNamespacesIsNamed(t *testing.T) {
	open := switches{users: "60000", networks: "60000", debian: "1", apparmor: "0"}
	with := func(change func(*switches)) switches {
		s := open
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		s      switches
		err    error
		cause  string
		remedy string
	}{
		"switched off by the limit":   {with(func(s *switches) { s.users = "0" }), syscall.ENOSPC, "max_user_namespaces is 0", "user.max_user_namespaces=15000"},
		"inside a sandbox":            {with(func(s *switches) { s.users, s.sandboxed = "0", true }), syscall.ENOSPC, "a sandbox or a container already", "outside"},
		"inside one of ours":          {with(func(s *switches) { s.sandboxed = true }), syscall.EPERM, "a sandbox or a container already", "outside"},
		"without network namespaces":  {with(func(s *switches) { s.networks = "0" }), syscall.ENOSPC, "max_net_namespaces is 0", "max_net_namespaces=15000"},
		"kept for root":               {with(func(s *switches) { s.debian = "0" }), syscall.EPERM, "unprivileged_userns_clone is 0", "unprivileged_userns_clone=1"},
		"kept for known programs":     {with(func(s *switches) { s.apparmor = "1" }), syscall.EACCES, "AppArmor", "apparmor_parser -r"},
		"used up":                     {open, syscall.ENOSPC, "limit", "sysctl user"},
		"not built in":                {open, syscall.EINVAL, "no user namespaces", "CONFIG_USER_NS"},
		"forbidden by a container":    {open, syscall.EPERM, "container", "seccomp"},
		"forbidden by something else": {open, syscall.EIO, "input/output", "claudebox check"},
	} {
		t.Run(name, func(t *testing.T) {
			err := explainNamespaces("make one", tc.err, tc.s)
			wantError(t, err, tc.cause)
			var known *diag.Error
			if !errors.As(err, &known) || !strings.Contains(known.Remedy, tc.remedy) || !errors.Is(err, tc.err) {
				t.Errorf("got %v with remedy %q; want %q", err, known.Remedy, tc.remedy)
			}
		})
	}
}

func TestTheReasonOfAFailedTrialIsNamed(t *testing.T) {
	apparmor := switches{apparmor: "1"}
	for text, want := range map[string]string{
		"Unknown option --disable-userns":                                           "too old",
		"Can't mount proc on /newroot/proc: Operation not permitted":                "container hides",
		"mount /proc: operation not permitted":                                      "container hides",
		"prctl(PR_SET_SECCOMP): Invalid argument":                                   "no filter",
		"execvp /store/env: Exec format error":                                      "cannot be run",
		"loopback: Failed RTM_NEWADDR: Operation not permitted":                     "AppArmor",
		"setting up uid map: Permission denied":                                     "AppArmor",
		"Creating new namespace failed: nesting depth or maximum exceeded (ENOSPC)": "AppArmor",
		"something that nobody has seen yet":                                        "nobody has seen",
	} {
		wantError(t, explainTrial(failure(nil, []byte(text)), apparmor), want)
	}
	wantError(t, explainTrial(failure(nil, []byte("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n")), switches{}), "container")
}
