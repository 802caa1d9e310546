package relay

import (
	"errors"
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
	for busy := false; ; {
		p, err := fill(from, busy)
		if p == nil {
			return err
		}
		busy = p.held >= busyPiece
		err = errors.Join(drain(to, p, busy), err)
		p.release()
		if err != nil {
			return err
		}
	}
}

// busyPiece is how many bytes at a time show that a stream flows, as TCP packs
// them over a loopback. Its ends will be ready again in a moment.
const busyPiece = 64 << 10

// fill waits until there is something to read, and takes a pipe only then. It
// returns none at the end of the stream. What came before an error is in the
// pipe.
func fill(from syscall.RawConn, busy bool) (p *pipe, err error) {
	waited := from.Read(func(fd uintptr) bool {
		if p, err = take(); err != nil {
			return true
		}
		err = p.fill(int(fd), busy)
		if busy && 0 < p.held && p.held < pipeSize/2 {
			letOthersRun() // for a larger piece: each wakes the receiver
			err = p.fill(int(fd), false)
		}
		again := errors.Is(err, unix.EAGAIN)
		if p.held > 0 && again {
			again, err = false, nil
		}
		if p.held == 0 {
			p.release()
			p = nil
		}
		return !again
	})
	return p, errors.Join(waited, err)
}

// drain writes what is in the pipe.
func drain(to syscall.RawConn, p *pipe, busy bool) (err error) {
	waited := to.Write(func(fd uintptr) bool {
		err = p.drain(int(fd), busy)
		return !errors.Is(err, unix.EAGAIN)
	})
	return errors.Join(waited, err)
}
