package relay

import (
	"io"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipe is what bytes pass through.
type pipe struct {
	out, in int
	held    int // how many bytes are in it
}

// pipeSize is what a pipe may hold, in bytes. All pipes of a user share
// fs.pipe-user-pages-soft, 64 MiB by default; a pipe that would pass it stays
// as it was.
const pipeSize = 256 << 10

// mostSpare bounds the pipes that are kept for further use: as many as bytes
// flow through at one time, not as many as there are connections.
const mostSpare = 16

var spare struct {
	sync.Mutex
	pipes []*pipe
}

func take() (*pipe, error) {
	spare.Lock()
	if last := len(spare.pipes) - 1; last >= 0 {
		p := spare.pipes[last]
		spare.pipes = spare.pipes[:last]
		spare.Unlock()
		return p, nil
	}
	spare.Unlock()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, err
	}
	// without it the pipe is smaller, and slower
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	return &pipe{out: fds[0], in: fds[1]}, nil
}

// release keeps an empty pipe for others. What is left in one belongs to its
// connection alone.
func (p *pipe) release() {
	spare.Lock()
	defer spare.Unlock()
	if p.held > 0 || len(spare.pipes) >= mostSpare {
		p.close()
		return
	}
	spare.pipes = append(spare.pipes, p)
}

func (p *pipe) close() {
	unix.Close(p.out)
	unix.Close(p.in)
}

// fill takes what there is to read and what fits; nothing at the end of a
// stream.
func (p *pipe) fill(from int, busy bool) error {
	n, err := splice(from, p.in, pipeSize-p.held, busy)
	p.held += n
	return err
}

// drain writes until it is empty or, for now, no more can be written.
func (p *pipe) drain(to int, busy bool) error {
	for p.held > 0 {
		n, err := splice(p.out, to, p.held, busy)
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		p.held -= n
	}
	return nil
}

// patience is how often an end of a stream that flows is looked at again
// before this process sleeps: to be woken for each piece costs more. Where
// nobody else wants to run, it takes a few microseconds; where many want to,
// each look is a turn lost to them.
const patience = 5

// splice moves what can be moved at once. EAGAIN says that it is nothing.
//
// The Go scheduler is not told of it: for calls as short as these, to hand
// the processor over and to get it back is much of their cost.
func splice(from, to, most int, busy bool) (int, error) {
	const flags = unix.SPLICE_F_NONBLOCK | unix.SPLICE_F_MOVE
	for looked := 0; ; {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(most), flags)
		switch {
		case errno == 0:
			return int(n), nil
		case errno == unix.EAGAIN && busy && looked < patience:
			looked++
			letOthersRun()
		case errno != unix.EINTR:
			return 0, errno
		}
	}
}

// letOthersRun is sched_yield(2): this process waits only if somebody else
// wants its processor.
func letOthersRun() { syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
