package spawn

import (
	"os"

	"golang.org/x/sys/unix"
)

// InMemory returns a descriptor of a file in memory with the given content (memfd_create(2)). It leaves nothing on a
// disk, and is sealed: nobody can change it.
func InMemory(content []byte) (fd int, err error) {
	fd, err = unix.MemfdCreate("claudebox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	if err = Fill(fd, content); err == nil {
		const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Fill writes content to the beginning of a file without changing the file offset.
func Fill(fd int, content []byte) error {
	for done := 0; done < len(content); {
		n, err := unix.Pwrite(fd, content[done:], int64(done))
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}
