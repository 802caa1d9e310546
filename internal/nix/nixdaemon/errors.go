package nixdaemon

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"claudebox/internal/diag"
)

// Causes that a caller may tell apart by errors.Is.
var (
	ErrAbsent   = errors.New("no Nix daemon listens there")
	ErrDenied   = errors.New("no permission to reach the Nix daemon")
	ErrRefused  = errors.New("the Nix daemon closed the connection before saying a word")
	ErrTooOld   = errors.New("the Nix daemon is too old")
	ErrProtocol = errors.New("not the Nix worker protocol")
	ErrStalled  = errors.New("the Nix daemon does not answer")
	ErrBroken   = errors.New("the connection to the Nix daemon is lost")
)

// remedies is what a person can do about each cause.
var remedies = []struct {
	cause  error
	remedy string
}{
	{ErrAbsent, "start the Nix daemon (systemctl start nix-daemon.socket), or install Nix for all users"},
	{ErrDenied, "ask the administrator to let you reach the socket (on Debian: add you to the group nix-users), then " +
		"log in again"},
	{ErrRefused, "add your user to allowed-users in /etc/nix/nix.conf; the reason is in the daemon's log"},
	{ErrTooOld, "upgrade Nix to 2.8 or later"},
	{ErrProtocol, "check that the socket is a Nix daemon's"},
	{ErrStalled, "look for a hanging garbage collection or a full disk, or restart the Nix daemon"},
	{ErrBroken, "see the daemon's log, then try again"},
}

// explain wraps err with what was being done and the remedy of its cause.
func explain(op string, err error) error {
	var done *diag.Error
	if err == nil || errors.As(err, &done) {
		return err
	}
	for _, r := range remedies {
		if errors.Is(err, r.cause) {
			return &diag.Error{Op: op, Err: err, Remedy: r.remedy}
		}
	}
	return &diag.Error{Op: op, Err: err}
}

// caused is an errno or end of stream under the name of its cause.
type caused struct{ cause, detail error }

func (c caused) Error() string   { return c.cause.Error() + " (" + c.detail.Error() + ")" }
func (c caused) Unwrap() []error { return []error{c.cause, c.detail} }

// ends say that the other side is gone.
var ends = []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}

// causes are the names of what the kernel says of a socket.
var causes = []struct {
	cause error
	of    []error
}{
	{ErrAbsent, []error{syscall.ENOENT, syscall.ECONNREFUSED, syscall.ENOTSOCK}},
	{ErrDenied, []error{syscall.EACCES, syscall.EPERM}},
	{ErrStalled, []error{syscall.EAGAIN, os.ErrDeadlineExceeded}},
	{ErrBroken, ends},
}

// named names the cause of a failed connect, and of a stream that failed or ended,
// unless it has a name.
func named(err error) error {
	if errors.As(err, new(caused)) {
		return err
	}
	for _, c := range causes {
		if isOne(err, c.of) {
			return caused{c.cause, bare(err)}
		}
	}
	return err
}

func isOne(err error, of []error) bool {
	return slices.ContainsFunc(of, func(one error) bool { return errors.Is(err, one) })
}

// bare is the errno below net's wrapping, which repeats the address.
func bare(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// DaemonError is the daemon's own answer that an operation did not succeed.
// Its wording differs between versions of Nix: never match on it.
type DaemonError struct {
	Message string
	Notes   []string // what the daemon logged during the operation, oldest first
}

// Error gives the message, then the notes: the reason often stands only
// there (a missing signature, the output of a failed build).
func (e *DaemonError) Error() string {
	lines := append([]string{e.Message}, e.Notes...)
	return strings.Join(lines, "\n")
}
