package within

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/linux/spawn"
)

// waiting starts a process in namespaces of its own that waits to be killed.
func waiting(t *testing.T) (pid int) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	sleep, err := exec.LookPath("sleep")
	must.Do(t, err)
	pid, err = spawn.Start(spawn.Program{
		Path: sleep, Args: []string{"sleep", "1000"}, Files: []int{0, 1, 2}, PIDs: true, Network: true,
	})
	must.Do(t, err)
	t.Cleanup(func() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	})
	return pid
}

func TestWhoJoinsHasTheRightsThatAreAskedForAndNoOthers(t *testing.T) {
	pid := waiting(t)
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	script := fmt.Sprintf("PATH='%s'; exec >/proc/self/fd/%d; readlink /proc/self/ns/net /proc/self/ns/user /proc/self/ns/pid; "+
		"grep CapEff /proc/self/status; cat /proc/$$/environ", os.Getenv("PATH"), w.Fd())
	_, ended, err := Join(pid, spawn.Program{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Files: []int{int(w.Fd())}, Rights: []uintptr{unix.CAP_NET_ADMIN},
	})
	w.Close()
	must.Do(t, err)
	got, _ := io.ReadAll(r)
	if err := ended(); err != nil {
		t.Error(err)
	}
	want := ""
	for _, namespace := range []string{fmt.Sprintf("%d/ns/net", pid), fmt.Sprintf("%d/ns/user", pid), "self/ns/pid"} {
		text, err := os.Readlink("/proc/" + namespace)
		must.Do(t, err)
		want += text + "\n"
	}
	if os.Getuid() != 0 { // root has all of them
		want += fmt.Sprintf("CapEff:\t%016x\n", 1<<unix.CAP_NET_ADMIN)
	}
	if text := string(got); !strings.HasPrefix(text, want) || os.Getuid() != 0 && text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

func TestWhoCannotJoinIsTold(t *testing.T) {
	_, ended, err := Join(waiting(t), spawn.Program{Path: "/nowhere", Args: []string{"x"}})
	must.Do(t, err)
	if err := ended(); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("got %v", err)
	}
	const nobody = 1<<22 + 1 // above the greatest number of a process
	if _, _, err := Join(nobody, spawn.Program{Path: "/bin/true", Args: []string{"x"}}); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
}
