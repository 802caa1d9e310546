package relay

import "golang.org/x/sys/unix"

// pipe is what bytes pass through. It is empty when it is not in use.
type pipe struct{ out, in int }

// pipeSize is what a pipe may hold, in bytes. All pipes of a user share
// fs.pipe-user-pages-soft, 64 MiB by default; a pipe that would pass it stays
// as it was.
const pipeSize = 256 << 10

// spare holds pipes for further use: as many as bytes flow at one time
// through, not as many as there are connections.
var spare = make(chan pipe, 16)

func take() (pipe, error) {
	select {
	case p := <-spare:
		return p, nil
	default:
	}
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
	select {
	case spare <- p:
	default:
		p.close()
	}
}

func (p pipe) close() {
	unix.Close(p.out)
	unix.Close(p.in)
}
