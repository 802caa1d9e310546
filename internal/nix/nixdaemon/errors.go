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

// Causes that a caller can distinguish with errors.Is.
var (
	ErrAbsent   = errors.New("no Nix daemon listens there")
	ErrDenied   = errors.New("no permission to reach the Nix daemon")
	ErrRefused  = errors.New("the Nix daemon closed the connection before saying a word")
	ErrTooOld   = errors.New("the Nix daemon is too old")
	ErrProtocol = errors.New("not the Nix worker protocol")
	ErrStalled  = errors.New("the Nix daemon does not answer")
	ErrBroken   = errors.New("the connection to the Nix daemon is lost")
)

// causes lists, for each cause, its remedy and the errors of a socket
// that mean it.
var causes = []struct {
	cause  error
	remedy string
	of     []error
}{
	{
		ErrAbsent, "start the Nix daemon (systemctl start nix-daemon.socket), or install Nix for all users",
		[]error{syscall.ENOENT, syscall.ECONNREFUSED, syscall.ENOTSOCK},
	},
	{
		ErrDenied, "ask the administrator to let you reach the socket (on Debian: add you to the group nix-users), " +
			"then log in again",
		[]error{syscall.EACCES, syscall.EPERM},
	},
	{ErrRefused, "add your user to allowed-users in /etc/nix/nix.conf; the reason is in the daemon's log", nil},
	{ErrTooOld, "upgrade Nix to 2.8 or later", nil},
	{ErrProtocol, "check that the socket is a Nix daemon's", nil},
	{
		ErrStalled, "look for a hanging garbage collection or a full disk, or restart the Nix daemon",
		[]error{syscall.EAGAIN, os.ErrDeadlineExceeded},
	},
	{ErrBroken, "see the daemon's log, then try again", goneErrors},
}

// explain wraps err with the operation and the remedy of its cause; nil stays nil.
func explain(op string, err error) error {
	var done *diag.Error
	if err == nil || errors.As(err, &done) {
		return err
	}
	for _, c := range causes {
		if errors.Is(err, c.cause) {
			return &diag.Error{Op: op, Err: err, Remedy: c.remedy}
		}
	}
	return &diag.Error{Op: op, Err: err}
}

// caused is an error of the socket, such as an errno or the end of the stream, with its cause.
type caused struct{ cause, detail error }

func (c caused) Error() string   { return c.cause.Error() + " (" + c.detail.Error() + ")" }
func (c caused) Unwrap() []error { return []error{c.cause, c.detail} }

// goneErrors are the errors which mean that the other side is gone.
var goneErrors = []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}

// named adds the cause to the error of a failed connect or of a stream that failed or ended.
// An error that has a cause already, or none that is known, is returned as it is.
func named(err error) error {
	if errors.As(err, new(caused)) {
		return err
	}
	for _, c := range causes {
		if isOne(err, c.of) {
			return caused{c.cause, errnoOf(err)}
		}
	}
	return err
}

func isOne(err error, of []error) bool {
	return slices.ContainsFunc(of, func(one error) bool { return errors.Is(err, one) })
}

// errnoOf returns the errno in err without net's wrapping, which repeats the address; or else err.
func errnoOf(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// DaemonError is the daemon's own message that an operation failed.
// Its wording differs between versions of Nix: never match on it.
type DaemonError struct {
	Message string
	Notes   []string // what the daemon logged during the operation, oldest first
}

// Error gives the message, then the notes: the reason is often only
// in the notes (a missing signature, the output of a failed build).
func (e *DaemonError) Error() string {
	lines := append([]string{e.Message}, e.Notes...)
	return strings.Join(lines, "\n")
}
