package serve

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

// A server inside keeps its half open when its client has reset the connection: the socket is free again all the same.
func TestAResetEndsBothDirectionsInside(t *testing.T) {
	server, err := net.Listen("tcp6", "[::1]:0")
	must.Do(t, err)
	defer server.Close()
	came := make(chan struct{})
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 1))
		close(came)
		_, _ = io.Copy(io.Discard, c) // and never closes
	}()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	must.Do(t, err)
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer outside.Close()
	client, err := net.Dial("tcp", outside.Addr().String())
	must.Do(t, err)
	accepted, err := outside.Accept()
	must.Do(t, err)
	done := make(chan struct{})
	go func() {
		newInside6([]int{fd}).carry(accepted.(*net.TCPConn), uint16(server.Addr().(*net.TCPAddr).Port))
		close(done)
	}()
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-came
	_ = client.(*net.TCPConn).SetLinger(0)
	client.Close()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("it waits for the server")
	}
}
