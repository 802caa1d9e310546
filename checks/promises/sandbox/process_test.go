//go:build lab

package sandbox_test

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/sandbox/launch"
)

func TestTheProcessesOfTheHostAreNotThere(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `echo /proc/[0-9]*/; tr '\0' ' ' </proc/1/cmdline; kill -0 `+strconv.Itoa(os.Getpid())+` 2>&1 || true`)
	pids, rest, _ := strings.Cut(got, "\n")
	if len(strings.Fields(pids)) > 3 || !strings.HasPrefix(rest, "bwrap ") || !strings.Contains(rest, "No such process") {
		t.Errorf("inside are %q, the first is %q", pids, rest)
	}
}

// bwrap's words tell of mounts and variables; the agent and `ps` on the host
// see none of them (containers/bubblewrap#503).
//
// Promise: no variable of yours inside, unless named.
func TestNoCommandLineTellsOfMountsOrVariables(t *testing.T) {
	w := newWorld(t)
	w.env["ANTHROPIC_API_KEY"] = canary
	got := w.inside(t, `cat /proc/*/cmdline | tr '\0' ' '`)
	for _, word := range []string{canary, "--setenv", "--bind", ".claudebox"} {
		if strings.Contains(got, word) {
			t.Errorf("%q is on a command line: %s", word, got)
		}
	}
}

// The kernel shows the names of all keys of a user in each of the user's /proc.
func TestTheNamesOfYourKernelKeysAreRead(t *testing.T) {
	key, err := unix.AddKey("user", canary, []byte("content"), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		t.Skip("this machine lets nobody keep keys:", err)
	}
	t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_REVOKE, key, 0, 0, 0) })
	if names, err := os.ReadFile("/proc/keys"); err != nil || !strings.Contains(string(names), canary) {
		t.Fatalf("it is not there outside: %v\n%s", err, names)
	}
	for _, tier := range []string{"full", "inet", "allow", "none"} {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			got := w.inside(t, `cat /proc/keys /proc/key-users /proc/1/root/proc/keys; umount /proc/keys 2>/dev/null || (cat >/proc/keys) 2>/dev/null || cat /proc/keys`, "--network", tier)
			wantEqual(t, got, "")
		})
	}
}

// Promise: no rights at all.
func TestEveryNamespaceIsTheSandboxsOwn(t *testing.T) {
	for tier, shared := range map[string][]string{"full": {"net", "time"}, "none": {"time"}} {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			got := w.inside(t, `cd /proc/self/ns; for n in cgroup ipc mnt net pid time user uts; do echo "$n $(readlink $n)"; done`, "--network", tier)
			for line := range strings.Lines(got) {
				name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
				own, err := os.Readlink("/proc/self/ns/" + name)
				must.Do(t, err)
				if (id == own) != slices.Contains(shared, name) {
					t.Errorf("%s is %s inside and %s outside", name, id, own)
				}
			}
		})
	}
}

// Promise: no rights at all.
func TestAnAgentHasNoPrivilegesAndGetsNone(t *testing.T) {
	w := newWorld(t)
	got := w.inside(t, `grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Gid)' /proc/self/status; awk '{ print $1, $3 }' /proc/self/[ug]id_map; cat /proc/sys/kernel/hostname`)
	want := "Uid: U U U U|Gid: G G G G|CapInh: 0|CapPrm: 0|CapEff: 0|CapBnd: 0|CapAmb: 0|NoNewPrivs: 1|Seccomp: 2|G 1|U 1|claudebox"
	var lines []string
	for line := range strings.Lines(got) {
		fields := strings.Fields(strings.ReplaceAll(line, "0000000000000000", "0"))
		lines = append(lines, strings.Join(fields, " "))
	}
	want = strings.NewReplacer("U ", strconv.Itoa(os.Getuid())+" ", "U|", strconv.Itoa(os.Getuid())+"|",
		"G ", strconv.Itoa(os.Getgid())+" ", "G|", strconv.Itoa(os.Getgid())+"|").Replace(want)
	wantEqual(t, strings.Join(lines, "\n"), strings.ReplaceAll(want, "|", "\n"))
}

// What each call of the probe must end with. The terminal is a real one, so
// that without the filter the first two succeed (where the kernel still lets
// them) or fail with EIO.
var fates = map[string][]string{
	"TIOCSTI":                  {"EPERM"},
	"TIOCSTI with high bits":   {"EPERM"},
	"TIOCLINUX":                {"EPERM"},
	"TIOCLINUX with high bits": {"EPERM"},
	"AF_VSOCK":                 {"EAFNOSUPPORT"},
	"AF_PACKET":                {"EAFNOSUPPORT"},
	"raw socket":               {"EPERM"},
	"unshare user":             {"EPERM", "ENOSPC"},
	"clone user":               {"EPERM", "ENOSPC"},
	"setns user":               {"EPERM"},
	"mount tmpfs":              {"EPERM"},
	"remount store":            {"EPERM"},
	"unmount proc":             {"EPERM"},
	"fsopen":                   {"EPERM", "ENOSYS"},
	"open_tree":                {"EPERM", "ENOSYS"},
	"pivot_root":               {"EPERM"},
	"chroot":                   {"EPERM"},
	"mknod":                    {"EPERM"},
	"sethostname":              {"EPERM"},
	"keyctl":                   {"EPERM", "ENOSYS"},
	"add_key":                  {"EPERM", "ENOSYS"},
	"bpf":                      {"EPERM", "ENOSYS"},
	"perf_event_open":          {"EPERM", "ENOSYS"},
	"userfaultfd":              {"EPERM", "ENOSYS"},
	"io_uring_setup":           {"EPERM", "ENOSYS"},
	"kexec_load":               {"EPERM", "ENOSYS"},
}

// Terminal injection (CVE-2017-5226, CVE-2019-10063, CVE-2023-28100), nested
// user namespaces, mounts, key rings and families past the tier.
//
// Promise: nothing typed into your terminal.
func TestForbiddenSystemCallsFail(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			w := newWorld(t)
			cmd := w.withProbe([]string{"calls"}, "--network", tier)
			master, terminal := openTerminal(t)
			cmd.Stdin = terminal
			cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
			got := succeed(t, cmd)
			seen := 0
			for line := range strings.Lines(got) {
				name, fate, _ := strings.Cut(strings.TrimSpace(line), ": ")
				if seen++; !slices.Contains(fates[name], fate) {
					t.Errorf("%s: %s; want one of %q", name, fate, fates[name])
				}
			}
			if seen != len(fates) {
				t.Errorf("%d calls were tried; want %d", seen, len(fates))
			}
			if typed := waiting(t, terminal); typed != 0 {
				t.Errorf("%d characters were typed into the terminal", typed)
			}
			master.Close()
		})
	}
}

// openTerminal makes a pseudo-terminal.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must.Do(t, err)
	t.Cleanup(func() { master.Close() })
	must.Do(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must.Do(t, err)
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	must.Do(t, err)
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}

// waiting is how many characters were typed and not read, complete lines or
// not.
func waiting(t *testing.T, terminal *os.File) int {
	t.Helper()
	settings, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	must.Do(t, err)
	settings.Lflag &^= unix.ICANON
	must.Do(t, unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, settings))
	n, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCINQ)
	must.Do(t, err)
	return n
}

// An agent must not find more open than its three streams, whatever the caller
// and claudebox have.
//
// Promise: no open file of yours.
func TestOnlyTheThreeStreamsAreOpen(t *testing.T) {
	w := newWorld(t)
	cmd := w.session(`ls /proc/$$/fd; true`)
	cmd.ExtraFiles = slices.Repeat([]*os.File{os.Stderr}, 300)
	got := strings.Fields(succeed(t, cmd))
	if !slices.Equal(got, []string{"0", "1", "2"}) && !slices.Equal(got, []string{"0", "1", "2", "255"}) { // 255: bash's own
		t.Errorf("open are %q", got)
	}
}

// `claudebox </etc` would leave /proc/self/fd/0/hostname readable.
func TestAFolderAsAStreamIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		path  string
		flags int
	}{
		"a folder":                     {"/etc", unix.O_RDONLY},
		"a folder by path only":        {"/etc", unix.O_PATH},
		"a file by path only":          {"/etc/hostname", unix.O_PATH},
		"a link by path only":          {"/proc/self/exe", unix.O_PATH | unix.O_NOFOLLOW},
		"a folder of the caller's own": {".", unix.O_RDONLY},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, stream := range []string{"input", "error"} {
				fd, err := unix.Open(tc.path, tc.flags|unix.O_CLOEXEC, 0)
				must.Do(t, err)
				file := os.NewFile(uintptr(fd), tc.path)
				defer file.Close()
				cmd := w.session("true")
				if stream == "input" {
					cmd.Stdin = file
					wantRefused(t, run(t, cmd), "standard input")
					continue
				}
				cmd.Stderr = file
				if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 125 {
					t.Errorf("standard error: %v", err)
				}
			}
		})
	}
}

func TestAFileOrPipeAsInputIsRead(t *testing.T) {
	w := newWorld(t)
	file, err := os.Open(w.write(t, "input", "from a file"))
	must.Do(t, err)
	defer file.Close()
	cmd := w.session("cat")
	cmd.Stdin = file
	wantEqual(t, succeed(t, cmd), "from a file")
	cmd = w.session("cat")
	cmd.Stdin = strings.NewReader("from a pipe")
	wantEqual(t, succeed(t, cmd), "from a pipe")
}

// A closed stream must not become a descriptor of claudebox's own.
func TestAClosedStreamStaysEmpty(t *testing.T) {
	w := newWorld(t)
	inner := w.session("cat; echo out; echo err >&2")
	for _, closed := range []string{"<&-", "2>&-", "<&- 2>&-"} {
		cmd := exec.Command("/bin/sh", "-c", `exec "$@" `+closed, "sh")
		cmd.Args = append(cmd.Args, inner.Args...)
		cmd.Dir, cmd.Env = inner.Dir, inner.Env
		got := run(t, cmd)
		if strings.TrimSpace(got.stdout) != "out" {
			t.Errorf("%s: status %d, %q, %q", closed, got.status, got.stdout, got.stderr)
		}
	}
}

func TestTheAgentsStatusIsClaudeboxs(t *testing.T) {
	for script, want := range map[string]int{
		"exit 0": 0, "exit 1": 1, "exit 42": 42, "exit 125": 125, "exit 255": 255,
		"kill -TERM $$": 143, "kill -KILL $$": 137, "kill -SEGV $$": 139, "exec /nowhere 2>/dev/null": 127,
	} {
		t.Run(script, func(t *testing.T) {
			w := newWorld(t)
			if got := run(t, w.session(script)); got.status != want || got.stderr != "" {
				t.Errorf("status %d, stderr %q; want %d", got.status, got.stderr, want)
			}
		})
	}
}

func closesAbstractSockets(t *testing.T) bool {
	t.Helper()
	if launch.ClosesAbstractSockets() {
		return true
	}
	t.Log("this kernel cannot close abstract sockets; the audit says so")
	return false
}
