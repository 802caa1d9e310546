package ondemand

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What the process needs may be gone for a while, as an ssh agent is: who
// connects then does not wait for ever, and the user reads of it once.
func TestAConnectionEndsWhenTheProcessCannotBeStarted(t *testing.T) {
	socket, listener := listen(t)
	tried, told := 0, 0
	p, err := Start(listener, Service{
		Name:   "nobody",
		Files:  func() ([]*os.File, error) { tried++; return nil, errors.New("gone") },
		Failed: func(error) { told++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	before := descriptors(t)
	const connections = 3
	for n := range connections {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		const patience = 20 * time.Second
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
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
	starts, told := 0, make(chan error, 100)
	p, err := Start(listener, Service{
		Program: "/bin/false", Name: "false",
		Files:  func() ([]*os.File, error) { starts++; return nil, nil },
		Serve:  func(line *os.File) { _, _ = line.Read(make([]byte, 1)) },
		Failed: func(err error) { told <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err = conn.Read(make([]byte, 1))
	p.Close()
	if os.IsTimeout(err) || starts != 1 || len(told) != 1 {
		t.Errorf("client: %v; started %d times, told %d times", err, starts, len(told))
	}
}

// listen makes a socket and the file that listens on it.
func listen(t *testing.T) (socket string, listener *os.File) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "socket")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	listener, err = l.File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return socket, listener
}

// descriptors counts the open descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
