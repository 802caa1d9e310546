package nixdaemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/linux/spawn"
)

// DefaultSocket is where a multi-user installation listens.
const DefaultSocket = "/nix/var/nix/daemon-socket/socket"

// SocketPath returns the socket that Nix's own programs would use, given the
// values of NIX_DAEMON_SOCKET_PATH and NIX_STATE_DIR.
func SocketPath(socket, stateDir string) string {
	if socket == "" && stateDir != "" {
		socket = stateDir + "/daemon-socket/socket"
	}
	return cmp.Or(socket, DefaultSocket)
}

// dialTime is the usual [Options.DialTimeout].
const dialTime = time.Minute

// Options tune a connection; the zero value is the usual one.
type Options struct {
	// Log gets the daemon's events while an operation runs, on the
	// goroutine that runs the operation. Nil drops them. It may be changed between
	// two operations.
	Log func(Event)
	// DialTimeout bounds connect and handshake together; 0 means one minute. They usually
	// take 2 ms, but seconds when hundreds of clients come at once.
	DialTimeout time.Duration
	// Local is the path of nix-daemon(8), which is started where no daemon listens
	// and the store is this user's own. Empty: none is started.
	Local string
	// AnswerTimeout bounds every operation that neither builds nor fetches;
	// 0 means one minute, since a garbage collection may delay the answer.
	AnswerTimeout time.Duration
	// List bounds how many elements of a list in an answer are kept in memory: an operation
	// whose answer has a longer list fails. 0: no bound.
	List int
}

// Dial connects to the daemon at a Unix socket and shakes hands. The daemon
// forks for each connection (1.5 to 2.6 ms), so make one and keep it.
//
// ctx bounds Dial only. Causes: [ErrAbsent], [ErrDenied], [ErrRefused],
// [ErrTooOld], [ErrProtocol], [ErrStalled], or ctx's own.
func Dial(ctx context.Context, socket string, opts Options) (*Client, error) {
	c := &Client{Socket: socket, Options: opts}
	if _, err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func dial(ctx context.Context, socket string, opts *Options) (*stream, error) {
	op := "connect to the Nix daemon at " + socket
	limited, cancel := context.WithTimeout(ctx, cmp.Or(opts.DialTimeout, dialTime))
	defer cancel()
	conn, said, err := connect(limited, socket, opts.Local)
	if err != nil {
		return nil, explain(op, dialFailure(ctx, err))
	}
	defer said.Close() // may be nil
	s, err := attach(ctx, limited, op, conn, opts)
	return s, withReason(err, said)
}

// Attach shakes hands on a connection that exists already, and returns a Client that
// owns it.
func Attach(ctx context.Context, conn *net.UnixConn, opts Options) (*Client, error) {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(opts.DialTimeout, dialTime))
	defer cancel()
	c := &Client{Options: opts}
	var err error
	if c.stream, err = attach(ctx, limited, "connect to the Nix daemon", conn, &c.Options); err != nil {
		return nil, err
	}
	return c, nil
}

func attach(ctx, limited context.Context, op string, conn *net.UnixConn, opts *Options) (*stream, error) {
	s := &stream{conn: conn, dec: newDecoder(conn), opts: opts}
	s.dec.most.kept = opts.List
	if err := s.guard(limited, s.handshake); err != nil {
		return nil, explain(op, dialFailure(ctx, err))
	}
	return s, nil
}

// Connect makes a connection as [Dial] does, but without the handshake: that is left to
// the process that gets the file.
func Connect(ctx context.Context, socket, local string) (*os.File, error) {
	limited, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, said, err := connect(limited, socket, local)
	said.Close()
	if err != nil {
		return nil, explain("connect to the Nix daemon at "+socket, dialFailure(ctx, err))
	}
	defer conn.Close()
	return conn.File()
}

// dialFailure returns ctx's own error if ctx has ended, [ErrStalled] for our time limit, or err with its cause.
func dialFailure(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return ErrStalled
	}
	return named(err)
}

// connect dials until the daemon's backlog has room. When a Unix backlog is full,
// a non-blocking connect returns EAGAIN at once where a blocking one would
// wait, and the backlog is 5 up to Nix 2.8.
//
// said has what a daemon that was started for this connection writes to its standard error; nil if none was.
func connect(ctx context.Context, socket, local string) (_ *net.UnixConn, said *os.File, err error) {
	var dialer net.Dialer
	for wait := time.Millisecond; ; wait = min(2*wait, 32*time.Millisecond) {
		conn, err := dialer.DialContext(ctx, "unix", socket)
		if err == nil {
			return conn.(*net.UnixConn), nil, nil
		}
		if errors.Is(err, syscall.ENOENT) && local != "" && ownStore() {
			return startLocal(local)
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

// ownStore reports whether this user may write the store's database, which means that Nix was
// installed for one user and has no daemon.
func ownStore() bool { return unix.Access("/nix/var/nix/db", unix.W_OK) == nil }

// startLocal starts a daemon that serves one connection, and exits when the connection ends.
func startLocal(program string) (_ *net.UnixConn, said *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "nix-daemon"), os.NewFile(uintptr(fds[1]), "claudebox")
	defer ours.Close()
	defer theirs.Close()
	cmd := exec.Command(program, "--stdio", "--option", "store", "local")
	if said, err = spawn.Messages(); err != nil {
		return nil, nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = theirs, theirs, said, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the agent
	if err := cmd.Start(); err != nil {
		said.Close()
		return nil, nil, err
	}
	go func() { _ = cmd.Wait() }()
	conn, err := net.FileConn(ours)
	if err != nil {
		said.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), said, nil
}

// withReason adds to a failed handshake what the daemon that was started for it said last.
func withReason(err error, said *os.File) error {
	var e *diag.Error
	if said == nil || !errors.As(err, &e) {
		return err
	}
	if line := spawn.LastLine(said); line != "" {
		e.Err = fmt.Errorf("%w: nix-daemon says %s", e.Err, line)
	}
	return err
}
