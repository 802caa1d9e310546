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
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	listener, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
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

// descriptors counts the open descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
