package spawn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// output starts a shell script with files behind the standard descriptors, and
// gives what it printed.
func output(t *testing.T, script string, p Program) string {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p.Path, p.Args = "/bin/sh", []string{"sh", "-c", script}
	p.Files = append([]int{0, int(w.Fd()), 2}, p.Files...)
	pid, err := Start(p)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var state syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &state, 0, nil); err != nil || state != 0 {
		t.Errorf("it ended with %#x, %v", state, err)
	}
	return string(text)
}

func TestItIsTheFirstProcessAndThisUserAlone(t *testing.T) {
	got := output(t, `echo $$; cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups; tr '\0' '\n' </proc/self/environ`, Program{PIDs: true})
	fields := strings.Join(strings.Fields(got), " ")
	uid, gid := os.Getuid(), os.Getgid()
	if want := fmt.Sprintf("1 %d %d 1 %d %d 1 deny", uid, uid, gid, gid); fields != want {
		t.Errorf("got %q, want %q", fields, want)
	}
}

func TestWithoutNamespacesItStaysInOurs(t *testing.T) {
	const script = "readlink /proc/self/ns/pid /proc/self/ns/user /proc/self/ns/net"
	var ours string
	for _, name := range []string{"pid", "user", "net"} {
		text, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			t.Fatal(err)
		}
		ours += text + "\n"
	}
	if got := output(t, script, Program{}); got != ours {
		t.Errorf("got %q, this process has %q", got, ours)
	}
}

func TestANetworkIsItsOwnWhenAskedFor(t *testing.T) {
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []bool{false, true} {
		got := strings.TrimSpace(output(t, "readlink /proc/self/ns/net", Program{Network: own}))
		if (got != ours) != own {
			t.Errorf("own %v: %s, this process has %s", own, got, ours)
		}
	}
}

// Numbers cross each other, and one file stands at two places.
func TestFilesGetTheirPlaces(t *testing.T) {
	var fds []int
	for n := range 12 {
		fd, err := unix.MemfdCreate("file", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		fmt.Fprint(os.NewFile(uintptr(dup(t, fd)), "file"), "<", n, ">")
		if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	order := []int{11, 0, 5, 3, 2, 1, 9, 8, 10, 4}
	var files []int
	want := ""
	for _, n := range order {
		files = append(files, fds[n])
		want += fmt.Sprintf("<%d>", n)
	}
	got := output(t, `for n in 3 4 5 6 7 8 9 10 11 12; do cat /proc/self/fd/$n; done; [ -e /proc/self/fd/13 ] && echo more; true`, Program{Files: files})
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func dup(t *testing.T, fd int) int {
	t.Helper()
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// What Go catches is as usual again, what is ignored stays ignored, and
// nothing is blocked.
func TestSignalsAreAsUsual(t *testing.T) {
	signal.Ignore(syscall.SIGUSR2)
	defer signal.Reset(syscall.SIGUSR2)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	got := map[string]string{}
	for line := range strings.Lines(output(t, "exec cat /proc/self/status", Program{PIDs: true})) {
		name, value, _ := strings.Cut(line, ":")
		got[name] = strings.TrimSpace(value)
	}
	for name, want := range map[string]uint64{"SigBlk": 0, "SigIgn": 1 << (unix.SIGUSR2 - 1), "SigCgt": 0} {
		if got[name] != fmt.Sprintf("%016x", want) {
			t.Errorf("%s is %s, want %016x", name, got[name], want)
		}
	}
}

// The limit counts what is in the namespace, not what else this user runs.
func TestProcessesAreLimitedInTheNamespace(t *testing.T) {
	const limit, tries = 20, 40
	script := fmt.Sprintf(`ulimit -u; for n in $(seq %d); do sleep 60 >&2 & echo $n; done; true`, tries)
	got := strings.Fields(output(t, "("+script+") 2>/dev/null; true", Program{PIDs: true, Processes: limit}))
	if last, err := strconv.Atoi(got[len(got)-1]); err != nil || got[0] != strconv.Itoa(limit) || last < limit/2 || last >= limit {
		t.Errorf("with a limit of %d: %q", limit, got)
	}
	got = strings.Fields(output(t, "("+script+") 2>/dev/null; true", Program{PIDs: true}))
	if got[len(got)-1] != strconv.Itoa(tries) {
		t.Errorf("without one: %q", got)
	}
}

func TestTheLimitOfOpenFilesIsTheCallers(t *testing.T) {
	const variable, limit = "SPAWN_TEST_LIMITED", 77
	if os.Getenv(variable) == "" {
		script := fmt.Sprintf(`ulimit -Sn %d; exec "$0" -test.run '^%s$' -test.v`, limit, t.Name())
		env, self := append(os.Environ(), variable+"=1"), executable(t)
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script, self}, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}})
		if err != nil {
			t.Fatal(err)
		}
		var state syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &state, 0, nil); err != nil || state != 0 {
			t.Errorf("with a limit of %d: %#x, %v", limit, state, err)
		}
		return
	}
	if got := strings.TrimSpace(output(t, "ulimit -Sn", Program{})); got != fmt.Sprint(limit) {
		t.Errorf("got %s", got)
	}
	if got := strings.TrimSpace(output(t, "ulimit -Sn", Program{Raised: true})); got == fmt.Sprint(limit) {
		t.Error("raised it is the same")
	}
}

func executable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func TestWhatFailsIsSaid(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, tc := range map[string]struct {
		program Program
		step    string
		err     error
	}{
		"no such program":     {Program{Path: "/nowhere", Args: []string{"x"}}, "execve", syscall.ENOENT},
		"not a program":       {Program{Path: "/etc/passwd", Args: []string{"x"}}, "execve", syscall.EACCES},
		"no such descriptor":  {Program{Path: "/bin/true", Args: []string{"x"}, Files: []int{0, 1, 2, 999}}, "pass the descriptors", syscall.EBADF},
		"a NUL in the words":  {Program{Path: "/bin/true", Args: []string{"x\x00y"}}, "read the arguments", syscall.EINVAL},
		"too many to give it": {Program{Path: "/bin/true", Args: []string{"x"}, Files: make([]int, maxFiles+1)}, "count the descriptors", syscall.E2BIG},
	} {
		t.Run(name, func(t *testing.T) {
			pid, err := Start(tc.program)
			var failed *Error
			if !errors.As(err, &failed) || failed.Step != tc.step || !errors.Is(err, tc.err) || pid != 0 {
				t.Errorf("got %d, %v; want %s: %v", pid, err, tc.step, tc.err)
			}
		})
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a child is left: %v", err)
	}
}

// The child runs on the memory of a process that goes on: with the collector
// at work and signals coming in, neither may harm the other.
func TestABusyProcessIsNotHarmed(t *testing.T) {
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 2 {
		busy.Go(func() {
			var keep [][]byte
			for {
				select {
				case <-stop:
					return
				default:
				}
				keep = append(keep, make([]byte, 10_000))
				if len(keep) > 500 {
					keep = nil
					runtime.GC()
				}
				_ = syscall.Kill(os.Getpid(), syscall.SIGURG) // Go's own, to interrupt goroutines
			}
		})
	}
	for n := range 100 {
		if got := output(t, fmt.Sprint("echo ", n), Program{PIDs: true}); got != fmt.Sprintln(n) {
			t.Fatalf("round %d: %q", n, got)
		}
	}
	close(stop)
	busy.Wait()
}

// Nothing survives a process that is killed.
func TestItDiesWithItsParent(t *testing.T) {
	const variable = "SPAWN_TEST_PARENT"
	if os.Getenv(variable) != "" {
		runtime.LockOSThread()
		pid, err := Start(Program{Path: "/bin/sleep", Args: []string{"sleep", "1000"}, Files: []int{0, 1, 2}, PIDs: true})
		fmt.Println(pid, err)
		select {}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := os.StartProcess(executable(t), []string{"test", "-test.run", "^" + t.Name() + "$"},
		&os.ProcAttr{Env: append(os.Environ(), variable+"=1"), Files: []*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	line, _ := bufio.NewReader(r).ReadString('\n')
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	child, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	_ = parent.Kill()
	_, _ = parent.Wait()
	ended := []unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}}
	if n, err := unix.Poll(ended, 10_000); n != 1 || err != nil {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

// mountsIn are a folder's, in a namespace of their own.
func mountsIn(dir string) []Mount {
	return []Mount{
		{Target: "/", Flags: unix.MS_REC | unix.MS_PRIVATE},
		{Source: "tmpfs", Target: dir, Kind: "tmpfs", Options: "mode=0755"},
		{Source: "tmpfs", Target: dir + "/inner", Kind: "tmpfs", Options: "mode=0700", Make: true},
	}
}

func TestMountsAreMadeForItAlone(t *testing.T) {
	dir := t.TempDir()
	got := output(t, "stat -c '%F %a' "+dir+"/inner; grep -c '"+dir+"' /proc/self/mountinfo", Program{PIDs: true, Mounts: mountsIn(dir)})
	if got != "directory 700\n2\n" {
		t.Errorf("got %q", got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("outside there is %v, %v", entries, err)
	}
}

// The other program sees the mounts and may make more; the first may not,
// unless it is root's.
func TestAnotherProgramRunsBesideWithTheRightToMount(t *testing.T) {
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fd := int(w.Fd())
	beside := &Program{Path: "/bin/sh", Args: []string{"sh", "-c", fmt.Sprintf("{ cat /proc/self/status; ls %s; } >/proc/self/fd/%d; >%s/inner/done", dir, fd, dir)}, Files: []int{fd}}
	own := output(t, "while ! [ -e "+dir+"/inner/done ]; do :; done; cat /proc/self/status", Program{PIDs: true, Mounts: mountsIn(dir), Beside: beside})
	w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	right := fmt.Sprintf("CapEff:\t%016x\n", 1<<unix.CAP_SYS_ADMIN)
	if os.Getuid() != 0 && (!strings.Contains(string(text), right) || !strings.Contains(own, "CapEff:\t0000000000000000\n")) {
		t.Errorf("beside:\n%s\nitself:\n%s", text, own)
	}
	for _, want := range []string{"SigBlk:\t0000000000000000\n", "SigCgt:\t0000000000000000\n", "\ninner\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestWhatCannotBeDoneFirstIsSaid(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir := t.TempDir()
	for step, p := range map[string]Program{
		"mount":                     {Mounts: []Mount{{Source: "tmpfs", Target: dir + "/none", Kind: "tmpfs"}}},
		"start a program beside it": {Mounts: mountsIn(dir), Beside: &Program{Path: dir + "/none", Args: []string{"none"}}},
	} {
		p.Path, p.Args, p.PIDs = "/bin/true", []string{"true"}, true
		_, err := Start(p)
		var failed *Error
		if !errors.As(err, &failed) || failed.Step != step || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("got %v, want ENOENT in %q", err, step)
		}
	}
}
