package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
)

// role says what a process that a test starts of this program is: words, of which it does one after the other.
const role = "PEER_TEST_ROLE"

func TestMain(m *testing.M) {
	if words := os.Getenv(role); words != "" {
		play(strings.Fields(words))
		return
	}
	os.Exit(m.Run())
}

// play is what a process of a test does, until its standard input ends.
func play(words []string) {
	fail := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	switch words[0] {
	case "claudebox":
		fail(Mark())
		play(words[1:])
	case "hidden":
		fail(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
		play(words[1:])
	case "sandbox": // as claudebox makes one, as far as this package is concerned
		cmd := process(strings.Join(words[1:], " "))
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		if id := os.Getuid(); id != 0 {
			inside := id
			if words[1] != "hidden" {
				inside = 0 // so that it can make a pid namespace, too
			}
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: id, Size: 1}}
		}
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		fail(cmd.Run())
	case "listen":
		l := listening(words[1])
		fmt.Println(l.Addr())
		go func() {
			for {
				c, err := l.Accept()
				fail(err)
				go c.Read(make([]byte, 1)) //nolint:errcheck // until the other end closes it
			}
		}()
		bufio.NewReader(os.Stdin).ReadByte() //nolint:errcheck // until it ends
	}
}

func process(words string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stderr = []string{role + "=" + words}, os.Stderr
	return cmd
}

// listening listens at an address as an agent may that shares a port, on loopback's device alone.
func listening(address string) net.Listener {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		_ = raw.Control(func(fd uintptr) {
			err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
				unix.BindToDevice(int(fd), "lo"))
		})
		return err
	}}
	config.SetMultipathTCP(false)
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		panic(err)
	}
	return l
}

// started is where a process listens that was started with these words.
func started(t *testing.T, words string) string {
	t.Helper()
	cmd := process(words)
	in, err := cmd.StdinPipe()
	must.Do(t, err)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() }) //nolint:errcheck // it ends by the end of its input
	line, err := bufio.NewReader(out).ReadString('\n')
	must.Do(t, err)
	return strings.TrimSpace(line)
}

// judged connects to an address, and judges that.
func judged(t *testing.T, address string) error {
	t.Helper()
	c, err := net.Dial("tcp", address)
	must.Do(t, err)
	t.Cleanup(func() { c.Close() })
	return Judge(netip.MustParseAddrPort(c.LocalAddr().String()), netip.MustParseAddrPort(c.RemoteAddr().String()))
}

// What listens decides: a program of the user's, a container's, a sandbox's, or claudebox for a published port.
func TestASandboxIsNoPeer(t *testing.T) {
	for words, want := range map[string]func(error) bool{
		"listen ":                           func(err error) bool { return err == nil },
		"sandbox listen ":                   func(err error) bool { return err == nil }, // as a container's forwarder
		"claudebox sandbox listen ":         func(err error) bool { return errors.As(err, new(Inside)) },
		"claudebox sandbox sandbox listen ": func(err error) bool { return errors.As(err, new(Inside)) },
		"sandbox claudebox sandbox listen ": func(err error) bool { return errors.As(err, new(Inside)) },
		"claudebox listen ":                 func(err error) bool { return errors.As(err, new(Inside)) },
		"claudebox sandbox hidden listen ":  func(err error) bool { return errors.Is(err, ErrUnseen) },
	} {
		for _, at := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
			t.Run(words+at, func(t *testing.T) {
				t.Parallel()
				address := strings.Replace(started(t, words+at), "[::]", "127.0.0.1", 1)
				if err := judged(t, address); !want(err) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// The user's program listens beside a sandbox, and has not accepted anything: so nobody can say who will.
func TestASharedPortIsNoPeerBeforeItAccepts(t *testing.T) {
	l := listening("127.0.0.1:0")
	defer l.Close()
	if err := judged(t, l.Addr().String()); err != nil {
		t.Errorf("alone: %v", err)
	}
	started(t, "claudebox sandbox listen "+l.Addr().String())
	for range 8 { // the kernel leads some to each
		if err := judged(t, l.Addr().String()); !errors.As(err, new(Inside)) {
			t.Errorf("shared: %v", err)
		}
	}
}

// Another machine has no socket here; a connection to a port where nobody listens any more leads nowhere.
func TestAnotherMachineIsAPeer(t *testing.T) {
	local := netip.MustParseAddrPort("192.0.2.1:40000")
	if err := Judge(local, netip.MustParseAddrPort("192.0.2.2:3128")); err != nil {
		t.Error(err)
	}
	if err := Judge(local, netip.MustParseAddrPort("127.0.0.1:1")); !errors.Is(err, ErrUnseen) {
		t.Errorf("loopback: %v", err)
	}
}
