package spawn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

// output starts a shell script with files behind the standard descriptors, and
// gives what it printed. The script finds its programs where this process does;
// a variable that is not exported is no part of its environment.
func output(t *testing.T, script string, p Program) string {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	p.Path, p.Args = "/bin/sh", []string{"sh", "-c", "PATH='" + os.Getenv("PATH") + "'; " + script}
	p.Files = append([]int{0, int(w.Fd()), 2}, p.Files...)
	pid, err := Start(p)
	w.Close()
	must.Do(t, err)
	text, err := io.ReadAll(r)
	must.Do(t, err)
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
		must.Do(t, err)
		ours += text + "\n"
	}
	if got := output(t, script, Program{}); got != ours {
		t.Errorf("got %q, this process has %q", got, ours)
	}
}

func TestANetworkIsItsOwnWhenAskedFor(t *testing.T) {
	ours, err := os.Readlink("/proc/self/ns/net")
	must.Do(t, err)
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
		must.Do(t, err)
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
	must.Do(t, err)
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

func TestTheLimitOfOpenFilesIsTheCallers(t *testing.T) {
	const variable, limit = "SPAWN_TEST_LIMITED", 77
	if os.Getenv(variable) == "" {
		script := fmt.Sprintf(`ulimit -Sn %d; exec "$0" -test.run '^%s$' -test.v`, limit, t.Name())
		env, self := append(os.Environ(), variable+"=1"), executable(t)
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script, self}, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}})
		must.Do(t, err)
		var state syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &state, 0, nil); err != nil || state != 0 {
			t.Errorf("with a limit of %d: %#x, %v", limit, state, err)
		}
		return
	}
	if got := strings.TrimSpace(output(t, "ulimit -Sn", Program{})); got != fmt.Sprint(limit) {
		t.Errorf("got %s", got)
	}
}

// program finds one: a build of Nix has /bin/sh alone at its usual place.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	must.Do(t, err)
	return path
}

func executable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	must.Do(t, err)
	return self
}

func TestWhatFailsIsSaid(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, tc := range map[string]struct {
		program Program
		err     error
	}{
		"no such program":    {Program{Path: "/nowhere", Args: []string{"x"}}, syscall.ENOENT},
		"not a program":      {Program{Path: "/etc/passwd", Args: []string{"x"}}, syscall.EACCES},
		"no such descriptor": {Program{Path: "/bin/true", Args: []string{"x"}, Files: []int{0, 1, 2, 999}}, syscall.EBADF},
		"a NUL in the words": {Program{Path: "/bin/true", Args: []string{"x\x00y"}}, syscall.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			if pid, err := Start(tc.program); !errors.Is(err, tc.err) || pid != 0 {
				t.Errorf("got %d, %v; want %v", pid, err, tc.err)
			}
		})
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a child is left: %v", err)
	}
}

// Nothing survives a process that is killed.
func TestItDiesWithItsParent(t *testing.T) {
	const variable = "SPAWN_TEST_PARENT"
	if os.Getenv(variable) != "" {
		runtime.LockOSThread()
		pid, err := Start(Program{Path: program(t, "sleep"), Args: []string{"sleep", "1000"}, Files: []int{0, 1, 2}, PIDs: true})
		fmt.Println(pid, err)
		select {}
	}
	r, w, err := os.Pipe()
	must.Do(t, err)
	parent, err := os.StartProcess(executable(t), []string{"test", "-test.run", "^" + t.Name() + "$"},
		&os.ProcAttr{Env: append(os.Environ(), variable+"=1"), Files: []*os.File{nil, w, w}})
	w.Close()
	must.Do(t, err)
	var pid int
	line, _ := bufio.NewReader(r).ReadString('\n')
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	child, err := unix.PidfdOpen(pid, 0)
	must.Do(t, err)
	defer unix.Close(child)
	_ = parent.Kill()
	_, _ = parent.Wait()
	ended := []unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}}
	if n, err := unix.Poll(ended, 10_000); n != 1 || err != nil {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

func TestRightsAndMountsAreItsOwnWhenAskedFor(t *testing.T) {
	ours, err := os.Readlink("/proc/self/ns/mnt")
	must.Do(t, err)
	const script = "readlink /proc/self/ns/mnt; grep CapEff /proc/self/status"
	right := fmt.Sprintf("CapEff:\t%016x\n", 1<<unix.CAP_SYS_ADMIN)
	got := output(t, script, Program{PIDs: true, Mounts: true, Rights: []uintptr{unix.CAP_SYS_ADMIN}})
	if strings.HasPrefix(got, ours+"\n") || os.Getuid() != 0 && !strings.HasSuffix(got, right) {
		t.Errorf("got %q; this process has %s", got, ours)
	}
	none := "CapEff:\t0000000000000000\n"
	if got := output(t, script, Program{PIDs: true}); os.Getuid() != 0 && got != ours+"\n"+none {
		t.Errorf("without: %q, want %q", got, ours+"\n"+none)
	}
}
