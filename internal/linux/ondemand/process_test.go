package ondemand

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

// What the process needs may be gone for a while, as an ssh agent is: who
// connects then does not wait for ever, and the user reads of it once.
func TestAConnectionEndsWhenTheProcessCannotBeStarted(t *testing.T) {
	socket, listener := listen(t)
	tried, told := 0, 0
	p, err := Start(listener, Service{
		Name:   "nobody",
		Open:   func() ([]*os.File, error) { tried++; return nil, errors.New("gone") },
		Failed: func(error) { told++ },
	})
	must.Do(t, err)
	before := descriptors(t)
	const connections = 3
	for n := range connections {
		conn, err := net.Dial("unix", socket)
		must.Do(t, err)
		const patience = 20 * time.Second
		must.Do(t, conn.SetReadDeadline(time.Now().Add(patience)))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d waits", n)
		}
		conn.Close()
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
	p.Close()
	if tried != connections || told != 1 {
		t.Errorf("tried %d times, told %d", tried, told)
	}
}

// A process that ends before it accepts is not started again and again: the client's connection is closed.
func TestAProcessThatEndsAtOnceIsStartedOnce(t *testing.T) {
	socket, listener := listen(t)
	program := filepath.Join(t.TempDir(), "program")
	must.Program(t, program, "#!/bin/sh\necho the reason >&2; exit 1\n")
	starts, told := 0, make(chan error, 100)
	p, err := Start(listener, Service{
		Program: program, Name: "program",
		Open:   func() ([]*os.File, error) { starts++; return nil, nil },
		Serve:  func(line *os.File) { _, _ = line.Read(make([]byte, 1)) },
		Failed: func(err error) { told <- err },
	})
	must.Do(t, err)
	conn, err := net.Dial("unix", socket)
	must.Do(t, err)
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err = conn.Read(make([]byte, 1))
	p.Close()
	if os.IsTimeout(err) || starts != 1 || len(told) != 1 {
		t.Fatalf("client: %v; started %d times, told %d times", err, starts, len(told))
	}
	if why := <-told; why.Error() != `program ended at once: exit status 1: "the reason"` {
		t.Errorf("the reason: %v", why)
	}
}

// Ctrl-C in a terminal goes to claudebox's process group, and is for the agent: it ended the broker and the ssh agent.
func TestCtrlCDoesNotReachTheProcess(t *testing.T) {
	socket, listener := listen(t)
	serving, over := make(chan struct{}), make(chan struct{})
	p, err := Start(listener, Service{
		Program: "/bin/sh", Name: "sh", Failed: func(error) {},
		Serve: func(*os.File) { close(serving); <-over },
	})
	must.Do(t, err)
	conn, err := net.Dial("unix", socket)
	must.Do(t, err)
	defer conn.Close()
	<-serving
	pid := p.Running().Pid
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("process %d is in group %d, %v", pid, group, err)
	}
	close(over)
	p.Close()
}

// listen makes a socket and the file that listens on it.
func listen(t *testing.T) (socket string, listener *os.File) {
	t.Helper()
	socket = must.Socket(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	must.Do(t, err)
	l.SetUnlinkOnClose(false)
	listener, err = l.File()
	must.Do(t, err)
	l.Close()
	return socket, listener
}

// descriptors counts the open descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	must.Do(t, err)
	return len(open)
}
