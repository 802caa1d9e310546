package ports

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"claudebox/internal/diag"
	"claudebox/internal/network/netns"
	"claudebox/internal/network/netns/nstest"
)

// sandbox is a network of its own, with its loopback up.
func sandbox(t *testing.T) netns.Namespace {
	t.Helper()
	ns, _ := nstest.Waiting(t)
	if err := ns.RaiseLoopback(); err != nil {
		t.Fatal(err)
	}
	return ns
}

// echo answers each connection with what it sent.
func echo(t *testing.T, l net.Listener) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.Copy(conn, conn)
			conn.Close()
		}
	}()
}

func ask(t *testing.T, conn net.Conn, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "hello")
	conn.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(conn)
	return string(got)
}

// free is a port that nobody has.
func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestTheHostReachesAPortInside(t *testing.T) {
	ns, port := sandbox(t), free(t)
	in, err := Take([]int{port})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	in.Serve(ns)
	conn, err := net.Dial("tcp4", local(port).String())
	if err == nil { // else the reset was faster
		if got := ask(t, conn, nil); got != "" {
			t.Errorf("nobody listens inside, and %q was answered", got)
		}
	}
	l, err := ns.Listen(port)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, l)
	conn, err = net.Dial("tcp4", local(port).String())
	if got := ask(t, conn, err); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestAServerInsideOnIPv6OnlyIsReached(t *testing.T) {
	ns, port := sandbox(t), free(t)
	in, err := Take([]int{port})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	in.Serve(ns)
	fds, err := ns.Sockets(1, syscall.AF_INET6, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	address := &syscall.SockaddrInet6{Port: port}
	address.Addr[15] = 1
	if err := errors.Join(syscall.Bind(fds[0], address), syscall.Listen(fds[0], 1)); err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fds[0]), "server")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, l)
	conn, err := net.Dial("tcp4", local(port).String())
	if got := ask(t, conn, err); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestAPortIsOnTheHostsLoopbackOnly(t *testing.T) {
	in, err := Take([]int{free(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if a := in.listeners[0].Addr().(*net.TCPAddr).AddrPort().Addr(); a.String() != "127.0.0.1" {
		t.Errorf("it listens on %s", a)
	}
}

func TestTheSandboxReachesAPortOfTheHost(t *testing.T) {
	ns := sandbox(t)
	service, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	echo(t, service)
	port := service.Addr().(*net.TCPAddr).Port
	listeners, err := Outward(ns, []int{port})
	if err != nil {
		t.Fatal(err)
	}
	defer listeners[0].Close()
	conn, err := ns.Dial(local(port))
	if got := ask(t, conn, err); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestAPortThatIsTakenIsSaid(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	spare := free(t)
	_, err = Take([]int{spare, l.Addr().(*net.TCPAddr).Port})
	var said *diag.Error
	if !errors.As(err, &said) || !strings.Contains(err.Error(), "listens on") || said.Remedy == "" {
		t.Errorf("got %v", err)
	}
	again, err := net.Listen("tcp4", local(spare).String())
	if err != nil {
		t.Fatalf("the other port was kept: %v", err)
	}
	again.Close()
}
