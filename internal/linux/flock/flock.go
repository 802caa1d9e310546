// Package flock locks folders for the processes of one user (flock(2)).
package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Folder opens a folder and locks it for this process, until the file is closed. It does not wait: it returns busy if
// another process holds the folder.
func Folder(dir string, busy error) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, busy
		}
		return nil, os.NewSyscallError("flock", err)
	}
	return f, nil
}
