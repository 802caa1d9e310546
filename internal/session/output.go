package session

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// late is how long to wait at the end for who may still hold a pipe of ours.
// Nobody of the sandbox does by then.
const late = 5 * time.Second

// carryOutput puts a pipe in place of each file that is standard output or
// standard error, and carries into the file what comes through it. The agent
// could open the file itself once more, by what /proc says of the descriptor:
// read what was in it, write over that, or change its mode. Two descriptors of
// one file get one pipe, so that what is written stays in its order.
//
// restore puts the files back. Its error says what could not be written.
func carryOutput() (restore func() error, err error) {
	carried := map[fileID]*carrier{}
	restore = func() error {
		var all []error
		for _, c := range carried {
			all = append(all, c.end())
		}
		return errors.Join(all...)
	}
	for _, fd := range []int{1, 2} {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		id := fileID{st.Dev, st.Ino}
		if carried[id] == nil {
			if carried[id], err = newCarrier(); err != nil {
				break
			}
		}
		if err = carried[id].take(fd); err != nil {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(&diag.Error{
			Op: "carry output to its file", Err: err,
			Remedy: "pipe it: claudebox … | cat >FILE",
		}, restore())
	}
	for _, c := range carried {
		c.begin()
	}
	return restore, nil
}

// fileID is a file's number on this machine (stat(2)).
type fileID struct{ dev, ino uint64 }

// carrier is a pipe to a file that is an output of ours.
type carrier struct {
	from, to *os.File
	files    map[int]*os.File // what was under the descriptors that are the pipe now
	done     chan error       // what became of it; nil: it has not begun
}

// newCarrier makes a pipe whose readers wait in Go's poller, and whose writers
// block, as they would not have to with a file.
func newCarrier() (*carrier, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	c := &carrier{to: os.NewFile(uintptr(ends[1]), "pipe"), files: map[int]*os.File{}}
	err := unix.SetNonblock(ends[0], true)
	c.from = os.NewFile(uintptr(ends[0]), "pipe")
	return c, err
}

// take puts the pipe in place of a descriptor.
func (c *carrier) take(fd int) error {
	kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return err
	}
	c.files[fd] = os.NewFile(uintptr(kept), "output")
	return unix.Dup3(int(c.to.Fd()), fd, 0)
}

// begin carries until nobody can write any more, or the file takes no more.
// Who writes then gets EPIPE.
func (c *carrier) begin() {
	c.to.Close()
	file := c.files[1]
	if file == nil {
		file = c.files[2]
	}
	c.done = make(chan error, 1)
	go func() {
		_, err := c.from.WriteTo(file)
		c.from.Close()
		c.done <- err
	}()
}

// end puts the files back, and waits until all has arrived in them.
func (c *carrier) end() error {
	_ = c.from.SetReadDeadline(time.Now().Add(late))
	for fd, file := range c.files {
		_ = unix.Dup3(int(file.Fd()), fd, 0)
	}
	var err error
	if c.done != nil {
		err = <-c.done
	}
	for _, file := range c.files {
		file.Close()
	}
	c.from.Close()
	c.to.Close()
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return &diag.Error{
		Op: "write the output to its file", Err: diag.Cause(err),
		Remedy: "make room there; the rest of the output is lost",
	}
}
