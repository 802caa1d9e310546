package asking

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/internal/sandbox/ask"
)

// stuck is a TCP socket whose last close lasts an hour: it has to send more than its peer reads.
func stuck(t *testing.T) (socket *os.File) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	must.Do(t, err)
	defer c.Close()
	peer, err := l.Accept()
	must.Do(t, err)
	t.Cleanup(func() { peer.Close() })
	socket, err = c.(*net.TCPConn).File()
	must.Do(t, err)
	must.Do(t, unix.SetsockoptLinger(int(socket.Fd()), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600}))
	for more := make([]byte, 1<<20); err == nil; {
		err = unix.Sendto(int(socket.Fd()), more, unix.MSG_DONTWAIT, nil)
	}
	return socket
}

// On Linux before 6.16 an agent could keep claudebox from its end: by a socket, sent along with a question, whose close lasts.
func TestADescriptorSentWithAQuestionDelaysNoEnd(t *testing.T) {
	folder := t.TempDir()
	s, err := Serve(folder, Answers{Answer: func(string) string { return "" }})
	must.Do(t, err)
	raw, err := s.listener.(syscall.Conn).SyscallConn()
	if err == nil { // as an older kernel does
		err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 1) })
	}
	must.Do(t, err)
	for n := range mostAsking + 1 { // the last one waits in the listener
		c, err := net.Dial("unix", s.file)
		must.Do(t, err)
		defer c.Close()
		if n < mostAsking {
			continue
		}
		socket := stuck(t)
		if _, _, err := c.(*net.UnixConn).WriteMsgUnix([]byte(ask.Host), unix.UnixRights(int(socket.Fd())), nil); err != nil {
			t.Fatal(err)
		}
		socket.Close()
	}
	ended := make(chan struct{})
	go func() {
		s.Close()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the session does not end")
	}
}
