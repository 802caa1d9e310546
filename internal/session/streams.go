package session

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// takeFiles replaces standard input and output that are files by copies and pipes.
// The agent could open the file itself once more, by what /proc says of the
// descriptor: read what was in it, write over that, or change its mode. giveBack
// undoes it, and says which output was lost.
func takeFiles() (giveBack func() error, err error) {
	restore, err := copyInput()
	if err != nil {
		return nil, err
	}
	arrived, err := carryOutput()
	if err != nil {
		restore()
		return nil, err
	}
	return func() error {
		defer restore()
		return arrived()
	}, nil
}

// isFile reports whether a descriptor is a regular file, and which.
func isFile(fd int) (st unix.Stat_t, is bool) {
	return st, unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// keep gives a descriptor of our own on what is open at another.
func keep(fd int) (*os.File, error) {
	kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	return os.NewFile(uintptr(kept), "standard stream"), err
}

// maxInput is how large, in bytes, a file may be that is standard input: it is copied to memory.
const maxInput = 256 << 20

// copyInput puts a copy in place of a file that is standard input. restore puts
// the file back, read as far as the agent has read the copy.
func copyInput() (restore func(), err error) {
	const stdin = 0
	st, is := isFile(stdin)
	if !is {
		return func() {}, nil
	}
	const remedy = "pipe it: cat FILE | claudebox …"
	if st.Size > maxInput {
		return nil, diag.Errorf("copy standard input", remedy, "the file has more than %d MiB", maxInput>>20)
	}
	offset, err := unix.Seek(stdin, 0, io.SeekCurrent)
	if err != nil {
		return nil, &diag.Error{Op: "keep standard input", Err: err}
	}
	file, err := keep(stdin)
	if err != nil {
		return nil, &diag.Error{Op: "keep standard input", Err: err}
	}
	if err := replaceInput(stdin, file, st.Size, offset); err != nil {
		file.Close()
		return nil, &diag.Error{Op: "copy standard input", Err: err, Remedy: remedy}
	}
	return func() {
		if read, err := unix.Seek(stdin, 0, io.SeekCurrent); err == nil {
			_, _ = file.Seek(read, io.SeekStart)
		}
		_ = unix.Dup3(int(file.Fd()), stdin, 0)
		file.Close()
	}, nil
}

// replaceInput makes stdin a copy of the first size bytes of a file, read as far as offset.
func replaceInput(stdin int, file *os.File, size, offset int64) error {
	fd, err := unix.MemfdCreate("standard input", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	memory := os.NewFile(uintptr(fd), "copy of standard input")
	defer memory.Close()
	if _, err := io.Copy(memory, io.NewSectionReader(file, 0, size)); err != nil {
		return err
	}
	if _, err := memory.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	return unix.Dup3(int(memory.Fd()), stdin, 0)
}

// carryOutput puts a pipe in place of each file that is standard output or
// standard error, and carries into the file what comes through it. Two descriptors
// of one file get one pipe, so that what is written stays in its order.
//
// restore puts the files back. Its error says what could not be written.
func carryOutput() (restore func() error, err error) {
	type fileID struct{ dev, ino uint64 } // stat(2)
	carried := map[fileID]*carrier{}
	restore = func() error {
		var all []error
		for _, c := range carried {
			all = append(all, c.end())
		}
		return errors.Join(all...)
	}
	for _, fd := range []int{1, 2} {
		st, is := isFile(fd)
		if !is {
			continue
		}
		id := fileID{st.Dev, st.Ino}
		if carried[id] == nil {
			carried[id] = &carrier{files: map[int]*os.File{}}
			err = carried[id].make()
		}
		if err == nil {
			err = carried[id].take(fd)
		}
		if err != nil {
			const remedy = "pipe it: claudebox … | cat >FILE"
			return nil, errors.Join(&diag.Error{Op: "carry output to its file", Err: err, Remedy: remedy}, restore())
		}
	}
	for _, c := range carried {
		c.begin()
	}
	return restore, nil
}

// carrier is a pipe to a file that is an output of ours.
type carrier struct {
	from, to *os.File
	files    map[int]*os.File // what was under the descriptors that are the pipe now
	done     chan error       // what became of it; nil: it has not begun
}

// make makes the pipe. Its readers wait in Go's poller, and its writers block, as
// they would not have to with a file.
func (c *carrier) make() error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	err := unix.SetNonblock(ends[0], true)
	c.from, c.to = os.NewFile(uintptr(ends[0]), "pipe"), os.NewFile(uintptr(ends[1]), "pipe")
	return err
}

// take puts the pipe in place of a descriptor.
func (c *carrier) take(fd int) error {
	file, err := keep(fd)
	if err != nil {
		return err
	}
	c.files[fd] = file
	return unix.Dup3(int(c.to.Fd()), fd, 0)
}

// begin carries until nobody can write any more, or the file takes no more. Who writes then gets EPIPE.
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

// late is how long to wait at the end for who may still hold a pipe of ours. Nobody of the sandbox does by then.
const late = 5 * time.Second

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
	return diag.Wrap("write the output to its file", err, "make room there; the rest of the output is lost")
}
