// Package streams keeps the files that are claudebox's standard streams from the agent.
package streams

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// Take replaces standard input by a copy, and standard output and error by pipes, where they are regular files or
// pipes. The agent could open the file itself again, through /proc/self/fd: read what was in it, write over that, or
// change its mode. A pipe it could open at its other end: write what a shell of the user's reads next as its script,
// or read what another program writes. In the background a terminal counts as output only: the agent could read what is
// typed there for others. giveBack undoes it; its error says which output was lost.
func Take(background bool) (giveBack func() error, err error) {
	restore := func() {}
	switch kind(stdin) {
	case unix.S_IFREG:
		restore, err = copyInput()
	case unix.S_IFIFO:
		restore, err = lendInput()
	case unix.S_IFCHR:
		if background && isTerminal(stdin) {
			restore, err = emptyInput()
		}
	}
	if err != nil {
		return nil, err
	}
	arrived, err := carryOutput(background)
	if err != nil {
		restore()
		return nil, err
	}
	return func() error {
		defer restore()
		return arrived()
	}, nil
}

// IsPiped reports whether standard output goes to another program. It is asked before [Take].
func IsPiped() bool {
	k := kind(1)
	return k == unix.S_IFIFO || k == unix.S_IFSOCK
}

// IsBackground reports whether this process is in the background of its terminal: what is typed there is for others.
func IsBackground() bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false // it has none
	}
	defer unix.Close(tty)
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && group != unix.Getpgrp()
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// kind returns what a descriptor is (inode(7), S_IFMT); 0: it is closed.
func kind(fd int) uint32 {
	var st unix.Stat_t
	_ = unix.Fstat(fd, &st)
	return st.Mode & unix.S_IFMT
}

// duplicate duplicates a descriptor, to one that is not a standard one and is closed on exec.
func duplicate(fd int) (*os.File, error) {
	kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	return os.NewFile(uintptr(kept), "standard stream"), err
}

const stdin = 0

// maxInput is how large, in bytes, a file may be that is standard input: it is copied to memory.
const maxInput = 256 << 20

// copyInput puts a copy in place of a file that is standard input. restore puts
// the file back, read as far as the agent has read the copy.
func copyInput() (restore func(), err error) {
	const remedy = "pipe it: cat FILE | claudebox …"
	var st unix.Stat_t
	if unix.Fstat(stdin, &st) == nil && st.Size > maxInput {
		return nil, diag.Errorf("copy standard input", remedy, "the file has more than %d MiB", maxInput>>20)
	}
	var file *os.File
	offset, err := unix.Seek(stdin, 0, io.SeekCurrent)
	if err == nil {
		file, err = duplicate(stdin)
	}
	if err != nil {
		return nil, &diag.Error{Op: "keep standard input", Err: err}
	}
	if err := replaceInput(file, st.Size, offset); err != nil {
		file.Close()
		return nil, &diag.Error{Op: "copy standard input", Err: err, Remedy: remedy}
	}
	return func() {
		if read, err := unix.Seek(stdin, 0, io.SeekCurrent); err == nil {
			_, _ = file.Seek(max(read, offset), io.SeekStart) // nothing is read twice, as a script of the user's
		}
		_ = unix.Dup3(int(file.Fd()), stdin, 0)
		file.Close()
	}, nil
}

// replaceInput makes stdin a copy of the first size bytes of a file, positioned at offset.
func replaceInput(file *os.File, size, offset int64) error {
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

// emptyInput puts /dev/null in the place of standard input.
func emptyInput() (restore func(), err error) {
	kept, err := duplicate(stdin)
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		kept.Close()
		return nil, err
	}
	defer null.Close()
	return func() {
		_ = unix.Dup3(int(kept.Fd()), stdin, 0)
		kept.Close()
	}, unix.Dup3(int(null.Fd()), stdin, 0)
}

// carryOutput puts a pipe in place of each file or pipe that is standard output or standard error, in the background
// also of a terminal, and carries into that what comes through it. Two descriptors
// of one file get one pipe, so that what is written stays in its order.
//
// restore puts the files back. Its error says what could not be written.
func carryOutput(background bool) (restore func() error, err error) {
	type fileID struct{ dev, ino uint64 } // stat(2)
	descriptors := map[fileID][]int{}
	for _, fd := range []int{1, 2} {
		var st unix.Stat_t
		k := kind(fd)
		isCarried := k == unix.S_IFREG || k == unix.S_IFIFO || background && isTerminal(fd)
		if isCarried && unix.Fstat(fd, &st) == nil {
			id := fileID{st.Dev, st.Ino}
			descriptors[id] = append(descriptors[id], fd)
		}
	}
	var carriers []*carrier
	restore = func() error {
		var all []error
		for _, c := range carriers {
			all = append(all, c.end())
		}
		return errors.Join(all...)
	}
	for _, fds := range descriptors {
		c := &carrier{fds: fds}
		carriers = append(carriers, c)
		if err := c.begin(); err != nil {
			err = &diag.Error{Op: "carry output to its file", Err: err, Remedy: diag.RaiseFiles}
			return nil, errors.Join(err, restore())
		}
	}
	return restore, nil
}

// carrier carries into a file, or a pipe of the user's, what comes through the pipe in its place.
type carrier struct {
	fds  []int      // descriptors of it
	kept []*os.File // duplicates of them, made before the pipe took their place
	from *os.File   // the pipe
	done chan error // how the copying ended; nil: it has not begun
}

// begin puts the pipe in place of the file and copies, in the background, until the last writer has closed the pipe
// or the file takes no more. After that a writer gets EPIPE.
func (c *carrier) begin() error {
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer to.Close()
	c.from = from
	for _, fd := range c.fds {
		file, err := duplicate(fd)
		if err != nil {
			return err
		}
		c.kept = append(c.kept, file)
		// Fd makes the pipe's write end blocking, as a file is; the reader waits in Go's poller.
		if err := unix.Dup3(int(to.Fd()), fd, 0); err != nil {
			return err
		}
	}
	c.done = make(chan error, 1)
	go func() {
		_, err := from.WriteTo(c.kept[0])
		from.Close()
		c.done <- err
	}()
	return nil
}

// late is how long the end waits, at most, for a process that still has a pipe of ours open. None of the sandbox has by
// then.
const late = 5 * time.Second

// end puts the files back, and waits until all has arrived in them.
func (c *carrier) end() (err error) {
	_ = c.from.SetReadDeadline(time.Now().Add(late))
	for i, file := range c.kept {
		_ = unix.Dup3(int(file.Fd()), c.fds[i], 0)
	}
	if c.done != nil {
		err = <-c.done
	}
	for _, file := range append(c.kept, c.from) {
		file.Close()
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, unix.EPIPE) { // who reads may end first
		return nil
	}
	return diag.Wrap("write the output to its file", err, "make room there; the rest of the output is lost")
}
