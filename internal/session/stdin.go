package session

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
)

// maxInput is how large, in bytes, a file may be that is standard input: it
// is copied to memory.
const maxInput = 256 << 20

// copyInput puts a copy in place of a file that is standard input. The agent
// could open the file itself once more, by what /proc says of the descriptor,
// and for writing, or change its mode. restore puts the file back, read as far
// as the agent has read the copy.
func copyInput() (restore func(), err error) {
	const stdin = 0
	var st unix.Stat_t
	if unix.Fstat(stdin, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return func() {}, nil
	}
	if st.Size > maxInput {
		return nil, diag.Errorf("copy standard input", "pipe it: cat FILE | claudebox …",
			"the file has more than %d MiB", maxInput>>20)
	}
	file, offset, err := keepInput(stdin)
	if err != nil {
		return nil, &diag.Error{Op: "keep standard input", Err: err}
	}
	if err := replaceInput(stdin, file, st.Size, offset); err != nil {
		file.Close()
		return nil, &diag.Error{Op: "copy standard input", Err: err, Remedy: "pipe it: cat FILE | claudebox …"}
	}
	return func() {
		if read, err := unix.Seek(stdin, 0, io.SeekCurrent); err == nil {
			_, _ = file.Seek(read, io.SeekStart)
		}
		_ = unix.Dup3(int(file.Fd()), stdin, 0)
		file.Close()
	}, nil
}

// keepInput gives a descriptor of our own on the file, and how far it is read.
func keepInput(stdin int) (*os.File, int64, error) {
	offset, err := unix.Seek(stdin, 0, io.SeekCurrent)
	if err != nil {
		return nil, 0, err
	}
	fd, err := unix.FcntlInt(uintptr(stdin), unix.F_DUPFD_CLOEXEC, 3)
	return os.NewFile(uintptr(fd), "standard input"), offset, err
}

// replaceInput makes stdin a copy of the first size bytes of a file, read as
// far as offset.
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
