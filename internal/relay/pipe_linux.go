package relay

import (
	"sync"

	"golang.org/x/sys/unix"
)

// pipe is what bytes pass through. It is empty when it is not in use.
type pipe struct{ out, in int }

// pipeSize is what a pipe may hold, in bytes. All pipes of a user share
// fs.pipe-user-pages-soft, 64 MiB by default; a pipe that would pass it stays
// as it was.
const pipeSize = 256 << 10

// mostSpare bounds the pipes that are kept for further use: as many as bytes
// flow through at one time, not as many as there are connections.
const mostSpare = 16

var spare struct {
	sync.Mutex
	pipes []pipe
}

func take() (pipe, error) {
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
		return pipe{}, err
	}
	// without it the pipe is smaller, and slower
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	return pipe{out: fds[0], in: fds[1]}, nil
}

// release gives an empty pipe back.
func (p pipe) release() {
	spare.Lock()
	defer spare.Unlock()
	if len(spare.pipes) >= mostSpare {
		p.close()
		return
	}
	spare.pipes = append(spare.pipes, p)
}

func (p pipe) close() {
	unix.Close(p.out)
	unix.Close(p.in)
}
