//go:build lab

package inside_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/alone"
	"claudebox/checks/kit/expect"
	"claudebox/checks/kit/must"
	"claudebox/internal/nix/inside"
	"claudebox/internal/nix/nixdaemon"
)

// TestMain becomes the filter when the words are its, as claudebox does.
func TestMain(m *testing.M) {
	if status, ran := inside.Run(os.Args); ran {
		os.Exit(status)
	}
	if alone.LinkedWithC() {
		os.Exit(alone.WithoutC())
	}
	os.Exit(m.Run())
}

// process is a filter in a process of its own over a recorder.
type process struct {
	*recorder
	*inside.Filter
	socket string
	file   *os.File // the list
	lost   chan string
}

func newProcess(t *testing.T, known string, only []string) process {
	t.Helper()
	r := newRecorder()
	return newProcessOver(t, r, known, only, r.dial)
}

// newProcessOver makes a filter that dial connects to the daemon.
func newProcessOver(
	t *testing.T, r *recorder, known string, only []string, dial func(context.Context) (*os.File, error),
) process {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30)) // longer than an address can be
	must.Do(t, os.Mkdir(dir, 0o700))
	p := process{recorder: r, lost: make(chan string, 2)}
	p.file = knownFile(t, dir, known)
	var err error
	p.Filter, err = inside.Listen(inside.Request{
		Dir: dir, Known: p.file, Only: only, Dial: dial, Lost: func(why string) { p.lost <- why },
	})
	must.Do(t, err)
	t.Cleanup(p.Close)
	folder, err := os.Open(dir)
	must.Do(t, err)
	t.Cleanup(func() { folder.Close() })
	p.socket = "/proc/self/fd/" + strconv.Itoa(int(folder.Fd())) + "/" + inside.Socket
	first, err := net.Dial("unix", p.socket) // else it is not started
	must.Do(t, err)
	defer first.Close()
	must.Do(t, p.Begin(0))
	return p
}

// knownFile makes the file of what the inner store relies on.
func knownFile(t *testing.T, dir, known string) *os.File {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, "known"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	must.Do(t, err)
	t.Cleanup(func() { file.Close() })
	if _, err := file.WriteString(known); err != nil {
		t.Fatal(err)
	}
	return file
}

func (p process) connect(t *testing.T) *nixdaemon.Client {
	t.Helper()
	c, err := nixdaemon.Dial(t.Context(), p.socket, nixdaemon.Options{})
	must.Do(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestTheFilterServesFromAProcessOfItsOwn(t *testing.T) {
	p := newProcess(t, "", []string{pathA, pathB})
	c := p.connect(t)
	for path, want := range map[string]bool{pathA: true, pathC: false} {
		if got, err := c.IsValidPath(t.Context(), path); err != nil || got != want {
			t.Errorf("IsValidPath(%s) = %v, %v; want %v", path, got, err, want)
		}
	}
	_, err := c.Pin(t.Context(), []string{pathA})
	if err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a refused operation: %v", err)
	}
	p.onlyQuestions(t)
}

// What the kernel says of the process: it can open nothing, and gain nothing.
func TestTheFilterIsConfined(t *testing.T) {
	p := newProcess(t, "", nil)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/status")
	must.Do(t, err)
	expect.Contains(t, string(status), "Seccomp:\t2\n", "NoNewPrivs:\t1\n")
}

func TestTheFilterEndsWithItsParentsWord(t *testing.T) {
	p := newProcess(t, "", nil)
	ended, err := unix.PidfdOpen(p.PID(), 0)
	must.Do(t, err)
	defer unix.Close(ended)
	p.Close()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(ended), Events: unix.POLLIN}}, 10_000); n != 1 {
		t.Errorf("the filter did not end: %v", err)
	}
	if _, err := nixdaemon.Dial(t.Context(), p.socket, nixdaemon.Options{DialTimeout: time.Second}); err == nil {
		t.Error("the socket is still there")
	}
}

func TestThatAPathWasCollectedIsTold(t *testing.T) {
	p := newProcess(t, pathA+"\n"+absent+"\n", nil)
	if why := <-p.lost; !strings.Contains(why, "collected") {
		t.Errorf("it says %q", why)
	}
}

// What lies there may not be valid any more. Else each session would find that
// out anew, and none could go on.
func TestAfterAPathWasCollectedTheNextSessionBeginsAnew(t *testing.T) {
	p := newProcess(t, pathA+"\n"+absent+"\n", nil)
	<-p.lost
	p.Close()
	if paths, err := known(p.file); err == nil {
		t.Errorf("the list is in order: %q", paths)
	}
}

// A filter that ends is no end of its session, and is told.
func TestThatTheFilterEndedIsTold(t *testing.T) {
	p := newProcess(t, "", nil)
	must.Do(t, unix.Kill(p.PID(), unix.SIGKILL))
	if why := <-p.lost; !strings.Contains(why, "ended") {
		t.Errorf("it says %q", why)
	}
}

// What costs a start nothing: a filter that nobody needs is not there.
func TestTheFilterIsStartedWhenThereIsNeed(t *testing.T) {
	for known, needed := range map[string]bool{"": false, pathA + "\n": true} {
		dir := t.TempDir()
		f, err := inside.Listen(inside.Request{Dir: dir, Known: knownFile(t, dir, known), Dial: newRecorder().dial})
		must.Do(t, err)
		begun := make(chan error)
		go func() { begun <- f.Begin(0) }()
		if needed {
			if err := <-begun; err != nil {
				t.Error(err)
			}
		}
		f.Close()
		if !needed {
			if err := <-begun; err != nil {
				t.Errorf("a filter that was closed before there was need of it: %v", err)
			}
		}
		if started := f.PID() != 0; started != needed {
			t.Errorf("with %q known: started = %v", known, started)
		}
	}
}

func TestAFilterThatCannotStartSaysWhy(t *testing.T) {
	dir := t.TempDir()
	f, err := inside.Listen(inside.Request{
		Dir: dir, Known: knownFile(t, dir, pathA+"\n"), Only: []string{"/tmp/not-a-store-path"},
		Dial: func(context.Context) (*os.File, error) { return nil, os.ErrNotExist },
		Lost: func(why string) { t.Error("told twice:", why) },
	})
	must.Do(t, err)
	defer f.Close()
	begun := make(chan error)
	go func() { begun <- f.Begin(0) }()
	select {
	case err := <-begun:
		if err == nil || !strings.Contains(err.Error(), "/tmp/not-a-store-path") {
			t.Fatalf("Begin returned %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Begin waits for a process that has ended")
	}
}

func TestWhyTheDaemonCannotBeReachedIsTold(t *testing.T) {
	p := newProcessOver(t, newRecorder(), "", nil, func(context.Context) (*os.File, error) {
		return nil, errors.New("the disk is on fire")
	})
	if _, err := p.connect(t).IsValidPath(t.Context(), pathA); err == nil || !strings.Contains(err.Error(), "on fire") {
		t.Errorf("the client reads: %v", err)
	}
}

// A daemon that does not answer is waited for up to a minute, but not by the end of the session.
func TestTheEndDoesNotWaitForTheDaemon(t *testing.T) {
	asked := make(chan struct{})
	p := newProcessOver(t, newRecorder(), "", nil, func(ctx context.Context) (*os.File, error) {
		close(asked)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
			t.Error("Close waits")
		}
		return nil, ctx.Err()
	})
	c := p.connect(t)
	go func() { _, _ = c.IsValidPath(context.Background(), pathA) }()
	<-asked
	p.Close()
}
