package spawn

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// mostMessages bounds what is kept of a process's standard error, in bytes.
const mostMessages = 4096

// Messages returns a file in memory for the standard error of a process. It keeps the first 4 KiB, and is no pipe:
// nobody has to read while the process runs.
func Messages() (*os.File, error) {
	fd, err := unix.MemfdCreate("claudebox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "messages")
	if err := file.Truncate(mostMessages); err != nil {
		file.Close()
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
		unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		file.Close()
		return nil, os.NewSyscallError("fcntl", err)
	}
	return file, nil
}

// FirstLine returns the first line of the messages, quoted: of a Go program that panics, the reason.
func FirstLine(messages *os.File) string {
	line, _, _ := bytes.Cut(written(messages), []byte{'\n'})
	return strconv.QuoteToASCII(string(line))
}

// LastLine returns the last line of the messages, quoted; empty if there are none.
func LastLine(messages *os.File) string {
	text := bytes.TrimSpace(written(messages))
	if len(text) == 0 {
		return ""
	}
	return strconv.QuoteToASCII(string(text[bytes.LastIndexByte(text, '\n')+1:]))
}

func written(messages *os.File) []byte {
	text := make([]byte, mostMessages)
	n, _ := messages.ReadAt(text, 0)
	text, _, _ = bytes.Cut(text[:n], []byte{0})
	return text
}
