package nixdaemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultSocket is where a multi-user installation listens.
const DefaultSocket = "/nix/var/nix/daemon-socket/socket"

// SocketPath is the socket that Nix's own programs would use, from the
// values of NIX_DAEMON_SOCKET_PATH and NIX_STATE_DIR.
func SocketPath(socket, stateDir string) string {
	if socket == "" && stateDir != "" {
		socket = stateDir + "/daemon-socket/socket"
	}
	return cmp.Or(socket, DefaultSocket)
}

// Options tune a connection; the zero value is the usual one.
type Options struct {
	// Log gets what the daemon says while an operation runs, on the
	// goroutine that runs the operation. Nil drops it.
	Log func(Event)
	// DialTimeout bounds connect and handshake together; 0 means 10 s. The
	// usual 2 ms grow when hundreds of clients come at once.
	DialTimeout time.Duration
	// Local is a program nix-daemon(8), which is started where no daemon listens
	// and the store is this user's own. Empty: there is none.
	Local string
	// AnswerTimeout bounds every operation that neither builds nor fetches;
	// 0 means one minute, since a garbage collection may hold one up.
	AnswerTimeout time.Duration
	// List bounds how much of a list in an answer is kept in memory: an operation
	// whose answer has a longer one fails. 0: any.
	List int
}

// Dial connects to the daemon at a Unix socket and shakes hands. The daemon
// forks for each connection (1.5 to 2.6 ms), so make one and keep it.
//
// ctx bounds Dial only. Causes: [ErrAbsent], [ErrDenied], [ErrRefused],
// [ErrTooOld], [ErrProtocol], [ErrStalled], or ctx's own.
func Dial(ctx context.Context, socket string, opts Options) (*Client, error) {
	op := "connect to the Nix daemon at " + socket
	limited, cancel := context.WithTimeout(ctx, cmp.Or(opts.DialTimeout, 10*time.Second))
	defer cancel()
	conn, err := connect(limited, socket, opts.Local)
	if err != nil {
		return nil, explain(op, dialFailure(ctx, err))
	}
	return attach(ctx, limited, op, conn, opts)
}

// Attach shakes hands on a connection that is there already, and is the Client's
// from then on.
func Attach(ctx context.Context, conn *net.UnixConn, opts Options) (*Client, error) {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(opts.DialTimeout, 10*time.Second))
	defer cancel()
	return attach(ctx, limited, "connect to the Nix daemon", conn, opts)
}

func attach(ctx, limited context.Context, op string, conn *net.UnixConn, opts Options) (*Client, error) {
	opts.AnswerTimeout = cmp.Or(opts.AnswerTimeout, time.Minute)
	c := &Client{conn: conn, dec: newDecoder(conn), opts: opts}
	c.dec.most.kept = opts.List
	if err := c.guard(limited, c.handshake); err != nil {
		return nil, explain(op, dialFailure(ctx, err))
	}
	return c, nil
}

// Connect makes a connection as [Dial] does, and leaves the handshake to who gets
// it.
func Connect(socket, local string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := connect(ctx, socket, local)
	if err != nil {
		return nil, explain("connect to the Nix daemon at "+socket, dialFailure(ctx, err))
	}
	defer conn.Close()
	return conn.File()
}

// dialFailure is the caller's own cancellation, or our time limit.
func dialFailure(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return ErrStalled
	}
	return named(err)
}

// connect dials until the daemon's backlog has room. A non-blocking connect
// to a full Unix backlog gives EAGAIN at once where a blocking one would
// wait, and the backlog is 5 up to Nix 2.8.
func connect(ctx context.Context, socket, local string) (*net.UnixConn, error) {
	var dialer net.Dialer
	for wait := time.Millisecond; ; wait = min(2*wait, 32*time.Millisecond) {
		conn, err := dialer.DialContext(ctx, "unix", socket)
		if err == nil {
			return conn.(*net.UnixConn), nil
		}
		if errors.Is(err, syscall.ENOENT) && local != "" && ownStore() {
			return startLocal(local)
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// ownStore reports whether this user writes the store's database: Nix was
// installed for one user, and has no daemon.
func ownStore() bool { return unix.Access("/nix/var/nix/db", unix.W_OK) == nil }

// startLocal starts a daemon that serves one connection, and ends with it.
func startLocal(program string) (*net.UnixConn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "nix-daemon"), os.NewFile(uintptr(fds[1]), "claudebox")
	defer ours.Close()
	defer theirs.Close()
	cmd := exec.Command(program, "--stdio", "--option", "store", "local")
	cmd.Stdin, cmd.Stdout, cmd.Dir = theirs, theirs, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the agent
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait() }()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}
