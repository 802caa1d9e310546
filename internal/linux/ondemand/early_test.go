package ondemand

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A process that ends before it accepts is not started again and again: the client's connection is closed.
func TestAProcessThatEndsAtOnceIsStartedOnce(t *testing.T) {
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
