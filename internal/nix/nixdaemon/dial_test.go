package nixdaemon_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/internal/diag"
	"claudebox/internal/nix/nixdaemon"
)

func TestHandshake(t *testing.T) {
	for minor, want := range map[int]nixdaemon.Info{
		34: {Version: "2.99.0", Protocol: 0x122, Trust: nixdaemon.TrustUnknown},
		35: {Version: "2.99.0", Protocol: 0x123, Trust: nixdaemon.NotTrusted},
		37: {Version: "2.99.0", Protocol: 0x125, Trust: nixdaemon.NotTrusted},
		38: {Version: "2.99.0", Protocol: 0x126, Trust: nixdaemon.NotTrusted},
		39: {Version: "2.99.0", Protocol: 0x126, Trust: nixdaemon.NotTrusted}, // newer than us
	} {
		t.Run(fmt.Sprintf("with a daemon of 1.%d", minor), func(t *testing.T) {
			c := dial(t, minor, nixdaemon.Options{}, peer.untilGone)
			if got := c.Info(); !reflect.DeepEqual(got, want) {
				t.Errorf("Info() = %+v; want %+v", got, want)
			}
		})
	}
}

func TestHandshakeFails(t *testing.T) {
	leavesNothing(t)
	for name, tc := range map[string]struct {
		serve func(peer)
		want  error
		says  string
	}{
		"when the daemon hangs up at once": {
			func(peer) {}, nixdaemon.ErrRefused, "before saying a word",
		},
		"when the greeting is another protocol's": {
			func(p peer) { _, _ = p.Write([]byte("HTTP/1.1 400 Bad Request\r\n")) }, nixdaemon.ErrProtocol, "greets with",
		},
		"when the greeting is cut short": {
			func(p peer) { p.send(0x6478696f); p.expect(0x6e697863, 0x126) }, nixdaemon.ErrBroken, "",
		},
		"when the daemon speaks 1.21": {
			func(p peer) { p.send(0x6478696f, 0x115); p.untilGone() }, nixdaemon.ErrTooOld, "1.21, 1.34 is needed",
		},
		"when the daemon speaks 2.0": {
			func(p peer) { p.send(0x6478696f, 0x200); p.untilGone() }, nixdaemon.ErrProtocol, "version 2.0",
		},
		"when the daemon does not answer": {
			peer.untilGone, nixdaemon.ErrStalled, "does not answer",
		},
		"when the daemon talks without end": {
			func(p peer) { p.send(0x6478696f, 0x122, "2.8.0"); p.flood() }, nixdaemon.ErrStalled, "does not answer",
		},
		"when the version lies about its length": {
			func(p peer) { p.send(0x6478696f, 0x122, 1<<50); p.untilGone() }, nixdaemon.ErrProtocol, "over the limit",
		},
		"when trust is no word of the protocol": {
			func(p peer) { p.send(0x6478696f, 0x126, 0, "2.99", 3); p.untilGone() }, nixdaemon.ErrProtocol, "trust of kind 3",
		},
		"with the daemon's own words": {
			func(p peer) {
				p.send(0x6478696f, 0x122, "2.8.0", failure("\x1b[31mno space left\x1b[0m"))
				p.untilGone()
			},
			nil, "no space left",
		},
	} {
		t.Run(name, func(t *testing.T) {
			socket := listen(t, 38, tc.serve)
			_, err := nixdaemon.Dial(t.Context(), socket, nixdaemon.Options{DialTimeout: 300 * time.Millisecond})
			checkCause(t, err, tc.want, tc.says)
		})
	}
}

// checkCause wants an error of that cause, with the operation and, for a
// known cause, a remedy.
func checkCause(t *testing.T, err, want error, says string) {
	t.Helper()
	var said *diag.Error
	switch {
	case !errors.As(err, &said):
		t.Fatalf("error = %v; want one with operation and remedy", err)
	case want != nil && (!errors.Is(err, want) || said.Remedy == ""):
		t.Errorf("error = %v, remedy %q; want %v", err, said.Remedy, want)
	case !strings.Contains(err.Error(), says):
		t.Errorf("error = %v; want %q in it", err, says)
	}
}

func TestDialWithoutDaemon(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Write(t, file, "")
	for name, socket := range map[string]string{
		"there is no socket":                filepath.Join(dir, "none"),
		"there is a file in its place":      file,
		"nobody listens on it any more":     deadSocket(t),
		"there is no folder to look for it": filepath.Join(dir, "no", "socket"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := nixdaemon.Dial(t.Context(), socket, nixdaemon.Options{})
			checkCause(t, err, nixdaemon.ErrAbsent, socket)
		})
	}
}

func deadSocket(t *testing.T) string {
	path := must.Socket(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must.Do(t, err)
	l.SetUnlinkOnClose(false)
	l.Close()
	return path
}

func TestDialDenied(t *testing.T) {
	if os.Getuid() == 0 {
		// Root may connect to everything, so the errno itself is judged.
		checkCause(t, nixdaemon.DialError(&net.OpError{Err: os.NewSyscallError("connect", syscall.EACCES)}),
			nixdaemon.ErrDenied, "permission denied")
		return
	}
	dir := t.TempDir()
	must.Do(t, os.Chmod(dir, 0))
	_, err := nixdaemon.Dial(t.Context(), filepath.Join(dir, "socket"), nixdaemon.Options{})
	checkCause(t, err, nixdaemon.ErrDenied, "permission denied")
}

func TestDialGivesTheCallersReason(t *testing.T) {
	socket := listen(t, 38, peer.untilGone)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("Ctrl-C")
	cancel(why)
	_, err := nixdaemon.Dial(ctx, socket, nixdaemon.Options{})
	if !errors.Is(err, why) {
		t.Errorf("Dial with a cancelled context = %v; want the caller's reason", err)
	}
}

// A full backlog gives a non-blocking connect EAGAIN, which Go hands on.
func TestDialWaitsForRoomInTheBacklog(t *testing.T) {
	path := must.Socket(t)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must.Do(t, err)
	must.Do(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0))
	f := os.NewFile(uintptr(fd), path)
	l, err := net.FileListener(f)
	f.Close()
	must.Do(t, err)
	defer l.Close()
	filler := fill(t, path)
	defer func() { filler.Close() }()
	go func() { // the daemon comes to its senses: one by one
		for range 2 {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p := peer{t, conn.(*net.UnixConn), 38}
			go func() { p.greetAnyone(); p.untilGone(); p.Close() }()
		}
	}()
	client, err := nixdaemon.Dial(t.Context(), path, nixdaemon.Options{})
	if err != nil {
		t.Fatalf("Dial = %v; want a connection once there is room", err)
	}
	client.Close()
}

// fill connects until the backlog is full.
func fill(t *testing.T, path string) net.Conn {
	conn, err := net.Dial("unix", path)
	must.Do(t, err)
	if more, err := net.Dial("unix", path); !errors.Is(err, syscall.EAGAIN) {
		more.Close()
		t.Fatalf("a second connect = %v; want EAGAIN, else this test shows nothing", err)
	}
	return conn
}

// greetAnyone sends the daemon's half without looking at the client's.
func (p peer) greetAnyone() {
	p.send(0x6478696f, 0x126, 0, "2.99.0", 2, msgLast)
}

func TestSocketPath(t *testing.T) {
	for name, tc := range map[string]struct{ socket, state, want string }{
		"is the installation's by default": {"", "", "/nix/var/nix/daemon-socket/socket"},
		"lies in another state folder":     {"", "/s", "/s/daemon-socket/socket"},
		"is the one that was asked for":    {"/x", "/s", "/x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nixdaemon.SocketPath(tc.socket, tc.state); got != tc.want {
				t.Errorf("SocketPath = %q; want %q", got, tc.want)
			}
		})
	}
}

// What the remedies for an unreachable daemon say is done, and the daemon answers.
func TestRemediesForTheDaemonWork(t *testing.T) {
	well := func(p peer) { p.greet(); p.untilGone() }
	for remedy, serve := range map[string]func(peer){
		"add your user to allowed-users in /etc/nix/nix.conf; the reason is in the daemon's log": func(peer) {},
		"upgrade Nix to 2.8 or later":                                                                                      func(p peer) { p.send(0x6478696f, 0x115); p.untilGone() },
		"check that the socket is a Nix daemon's":                                                                          func(p peer) { _, _ = p.Write([]byte("HTTP/1.1 400 Bad Request\r\n")) },
		"look for a hanging garbage collection or a full disk, or restart the Nix daemon":                                  peer.untilGone,
		"see the daemon's log, then try again":                                                                             func(p peer) { p.send(0x6478696f); p.expect(0x6e697863, 0x126) },
		"start the Nix daemon (systemctl start nix-daemon.socket), or install Nix for all users":                           nil,
		"ask the administrator to let you reach the socket (on Debian: add you to the group nix-users), then log in again": nil,
	} {
		t.Run(remedy, func(t *testing.T) {
			socket := must.Socket(t)
			var mend func()
			switch {
			case serve != nil:
				bad, good := listen(t, 38, serve), listen(t, 38, well)
				must.Do(t, os.Symlink(bad, socket))
				mend = func() { must.Do(t, os.Remove(socket), os.Symlink(good, socket)) }
			case strings.HasPrefix(remedy, "start"):
				mend = func() { must.Do(t, os.Symlink(listen(t, 38, well), socket)) }
			case os.Getuid() == 0:
				t.Skip("root may connect to everything")
			default:
				must.Do(t, os.Symlink(listen(t, 38, well), socket), os.Chmod(filepath.Dir(socket), 0))
				mend = func() { must.Do(t, os.Chmod(filepath.Dir(socket), 0o700)) }
			}
			dial := func() error {
				c, err := nixdaemon.Dial(t.Context(), socket, nixdaemon.Options{DialTimeout: 300 * time.Millisecond})
				if err == nil {
					c.Close()
				}
				return err
			}
			if err := dial(); diag.Remedy(err) != remedy {
				t.Errorf("remedy %q: %v", diag.Remedy(err), err)
			}
			mend()
			if err := dial(); err != nil {
				t.Error(err)
			}
		})
	}
}
