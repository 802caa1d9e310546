package netns_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/internal/network/netns"
	"claudebox/internal/network/netns/nstest"
)

// sandbox is a bash in a network namespace of its own. It runs its script
// when it is told to.
type sandbox struct {
	netns.Namespace
	cmd *exec.Cmd
	in  io.WriteCloser
	out strings.Builder
}

func start(t testing.TB, script string) *sandbox {
	t.Helper()
	s := &sandbox{cmd: exec.Command("bash", "-c", "read -r; "+script)}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	s.Namespace = nstest.Start(t, s.cmd)
	return s
}

// finish lets the script run, and returns what it printed.
func (s *sandbox) finish(t *testing.T) string {
	t.Helper()
	io.WriteString(s.in, "\n")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, s.out.String())
	}
	return s.out.String()
}

// listening is a sandbox with a listener at a port of its loopback.
func listening(t *testing.T, script string, port int) (*sandbox, net.Listener) {
	t.Helper()
	s := start(t, script)
	if err := s.RaiseLoopback(); err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen(port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return s, l
}

func TestAListenerMadeFromOutsideIsReachedFromInside(t *testing.T) {
	s, l := listening(t, "exec 3<>/dev/tcp/127.0.0.1/80; cat <&3", 80)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Write([]byte("hello"))
		conn.Close()
	}()
	if got := s.finish(t); got != "hello" {
		t.Errorf("the sandbox got %q", got)
	}
	if conn, err := net.Dial("tcp", "127.0.0.1:80"); err == nil {
		t.Error("port 80 of the host answers")
		conn.Close()
	}
}

// A host's bbr would pace each piece that goes over the sandbox's loopback.
func TestConnectionsOverTheLoopbackAreNotPaced(t *testing.T) {
	s, l := listening(t, "", 3000)
	dialled, err := s.Dial(netip.MustParseAddrPort("127.0.0.1:3000"))
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	for name, conn := range map[string]net.Conn{"dialled": dialled, "accepted": accepted} {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION); got != "reno" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		})
	}
}

func TestAPortThatIsTakenInside(t *testing.T) {
	s := start(t, "")
	l, err := s.Listen(8080)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := s.Listen(8080); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v", err)
	}
}

func TestDialReachesWhatListensInside(t *testing.T) {
	s := start(t, "")
	if err := s.RaiseLoopback(); err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen(3000)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := s.Dial(netip.MustParseAddrPort("127.0.0.1:3000"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Write([]byte("hello"))
	conn.Close()
	inside, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(inside); string(got) != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	l.Close()
	if _, err := s.Dial(netip.MustParseAddrPort("127.0.0.1:3000")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
}

// What the kernel lets a namespace's owner do, this process may do by a
// socket of it: tier inet loads its rules so.
func TestANetlinkSocketOfTheNamespaceMayConfigureIt(t *testing.T) {
	s := start(t, "")
	fds, err := s.Sockets(1, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	// RTM_SETLINK of interface 1, to be up
	request := []byte{
		32, 0, 0, 0, unix.RTM_SETLINK, 0, unix.NLM_F_REQUEST | unix.NLM_F_ACK, 0, 1, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 1, 0, 0, 0, unix.IFF_UP, 0, 0, 0, unix.IFF_UP, 0, 0, 0,
	}
	if err := unix.Sendto(fds[0], request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 256)
	if n, _, err := unix.Recvfrom(fds[0], answer, 0); err != nil || n < 20 || [4]byte(answer[16:20]) != [4]byte{} {
		t.Errorf("%v: % x", err, answer[:n])
	}
}

func TestASettingIsThatOfTheNamespace(t *testing.T) {
	const file = "/proc/sys/net/ipv4/ping_group_range"
	outside, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, "cat "+file)
	if err := s.Set("ipv4/ping_group_range", fmt.Sprintf("%d %d", os.Getgid(), os.Getgid())); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(s.finish(t)); !slices.Equal(got, []string{strconv.Itoa(os.Getgid()), strconv.Itoa(os.Getgid())}) {
		t.Errorf("inside it is %q", got)
	}
	if now, _ := os.ReadFile(file); string(now) != string(outside) {
		t.Errorf("outside it is %q now; it was %q", now, outside)
	}
	if err := s.Set("ipv4/absent", "1"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("an absent one: %v", err)
	}
}

func TestManyVisitorsAtOnce(t *testing.T) {
	s := start(t, "")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				fds, err := s.Sockets(8, unix.AF_INET, unix.SOCK_STREAM, 0)
				if err != nil || len(fds) != 8 {
					t.Errorf("%d sockets, %v", len(fds), err)
					return
				}
				for _, fd := range fds {
					if err := unix.Close(fd); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
}

// A visitor borrows our memory while it gets rights over the sandbox. Were ours
// taken for a privileged program's on that account, /proc/self would be root's.
func TestAVisitLeavesThisProcessAsItWas(t *testing.T) {
	s := start(t, "")
	before, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err := s.RaiseLoopback(); err != nil {
		t.Fatal(err)
	}
	if after, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); before != 1 || after != before {
		t.Errorf("dumpable was %d and is %d, %v", before, after, err)
	}
}

func TestANamespaceThatIsNotOurs(t *testing.T) {
	n, err := netns.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if _, err := n.Sockets(1, unix.AF_INET, unix.SOCK_STREAM, 0); err == nil {
		t.Error("a visitor came into the namespace that it was in")
	}
	if _, err := netns.Of(-1); err == nil {
		t.Error("a process that is not there has a namespace")
	}
}

func BenchmarkSocket(b *testing.B) {
	s := start(b, "")
	for b.Loop() {
		fds, err := s.Sockets(1, unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			b.Fatal(err)
		}
		unix.Close(fds[0])
	}
}
