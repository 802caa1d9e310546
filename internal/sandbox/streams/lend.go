package streams

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// lendInput puts a pipe of claudebox's own in place of the pipe that is standard input. What the agent does not read
// stays in that, as without a sandbox: `… | while read -r line; do claudebox …; done` goes on with the next line.
// restore puts the pipe back.
func lendInput() (restore func(), err error) {
	l := lender{done: make(chan struct{})}
	for _, step := range []func() error{
		func() (err error) { l.users, err = duplicate(stdin); return err },
		func() (err error) { l.null, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); return err },
		func() (err error) { l.stopped, l.stop, err = os.Pipe(); return err },
		l.replace,
	} {
		if err := step(); err != nil {
			return nil, &diag.Error{Op: "lend standard input", Err: err, Remedy: diag.RaiseFiles}
		}
	}
	go l.serve()
	return l.end, nil
}

// lender lends a pipe of the user's in pieces: it copies one (tee(2)), and takes it away when the agent has read all of
// it.
type lender struct {
	users         *os.File // the pipe
	to            *os.File // the pipe in its place, which has room for one piece
	lent          int      // bytes of the piece; 0: none is lent
	null          *os.File
	stopped, stop *os.File
	done          chan struct{}
}

// piece is the size of the smallest pipe (F_SETPIPE_SZ of fcntl(2)): it takes a second piece only when it is empty.
const piece = 4096

func (l *lender) replace() error {
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer from.Close()
	l.to = to
	if _, err := unix.FcntlInt(to.Fd(), unix.F_SETPIPE_SZ, piece); err != nil {
		return err
	}
	if err := from.Chmod(0o400); err != nil { // an agent that writes there would wait for itself
		return err
	}
	return unix.Dup3(int(from.Fd()), stdin, 0)
}

// serve lends until the user's pipe has ended, or the session.
func (l *lender) serve() {
	defer close(l.done)
	users, to := int(l.users.Fd()), int(l.to.Fd())
	for l.await(users, unix.POLLIN) && l.await(to, unix.POLLOUT) {
		n, err := unix.Tee(users, to, piece, unix.SPLICE_F_NONBLOCK)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR): // another reader of the user's was faster
			continue
		case n <= 0 || err != nil:
			l.to.Close()
			return
		}
		if l.lent = int(n); !l.await(to, unix.POLLOUT) {
			return
		}
		l.take(l.lent)
	}
}

// await waits for an event of a descriptor, or its end. It reports false when the session has ended.
func (l *lender) await(fd int, event int16) bool {
	for {
		list := []unix.PollFd{{Fd: int32(l.stopped.Fd()), Events: unix.POLLIN}, {Fd: int32(fd), Events: event}}
		if _, err := unix.Poll(list, -1); err == nil {
			return list[0].Revents == 0
		} else if !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}

// take takes from the user's pipe what the agent has read.
func (l *lender) take(n int) {
	for l.lent = 0; n > 0; {
		taken, err := unix.Splice(int(l.users.Fd()), nil, int(l.null.Fd()), nil, n, unix.SPLICE_F_NONBLOCK)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || taken <= 0 {
			return // another reader of the user's has it
		}
		n -= int(taken)
	}
}

func (l *lender) end() {
	l.stop.Close()
	<-l.done
	if unread, err := unix.IoctlGetInt(stdin, unix.TIOCINQ); err == nil && unread < l.lent {
		l.take(l.lent - unread)
	}
	_ = unix.Dup3(int(l.users.Fd()), stdin, 0)
	for _, file := range []*os.File{l.users, l.to, l.null, l.stopped} {
		file.Close()
	}
}
