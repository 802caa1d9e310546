package relay

import (
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Both carries bytes both ways between two connections, until both have said
// that they send no more or one breaks, and closes them.
func Both(a, b *net.TCPConn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		OneWay(a, b)
	}()
	OneWay(b, a)
	<-done
	a.Close()
	b.Close()
}

// OneWay carries what src sends to dst, and then that there is no more. When
// it cannot, it closes both, which ends the other way as well.
func OneWay(dst, src *net.TCPConn) {
	err := carry(dst, src)
	if err == nil {
		err = dst.CloseWrite()
	}
	if err != nil {
		dst.Close()
		src.Close()
	}
}

// carry returns nil when src has ended.
func carry(dst, src *net.TCPConn) error {
	from, err := src.SyscallConn()
	if err != nil {
		return err
	}
	to, err := dst.SyscallConn()
	if err != nil {
		return err
	}
	for {
		p, n, err := fill(from)
		if err != nil || n == 0 {
			return err
		}
		if err := p.drain(to, n); err != nil {
			p.close() // there is something in it
			return err
		}
		p.release()
	}
}

const spliceFlags = unix.SPLICE_F_NONBLOCK | unix.SPLICE_F_MOVE

// fill waits until there is something to read, and takes a pipe only then. It
// returns 0 and no pipe at the end of the stream.
func fill(from syscall.RawConn) (p pipe, n int64, err error) {
	waited := from.Read(func(fd uintptr) bool {
		if p, err = take(); err != nil {
			return true
		}
		n, err = splice(int(fd), p.in, pipeSize)
		if n == 0 {
			p.release()
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	return p, n, errors.Join(waited, err)
}

// drain writes the n bytes that are in the pipe.
func (p pipe) drain(to syscall.RawConn, n int64) (err error) {
	waited := to.Write(func(fd uintptr) bool {
		for n > 0 && err == nil {
			var m int64
			m, err = splice(p.out, int(fd), n)
			if errors.Is(err, unix.EAGAIN) {
				err = nil
				return false
			}
			if m == 0 && err == nil {
				err = io.ErrUnexpectedEOF
			}
			n -= m
		}
		return true
	})
	return errors.Join(waited, err)
}

func splice(from, to int, most int64) (int64, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, int(most), spliceFlags)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}
