package within

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/spawn"
)

// Join starts a program in the user and network namespaces of a process of this user's, beside that process. In
// everything else the program is where this process is. It has an empty environment, the standard descriptors and
// p.Files, each under the number that it has here, and p.Rights over that user namespace. Every signal is blocked in
// it.
//
// Join does not wait until the program runs; only SIGKILL ends it from outside. The caller must call ended, which waits
// for the program's end and returns an error if it could not be started or its status is not 0.
func Join(process int, p spawn.Program) (pid int, ended func() error, err error) {
	var s script
	s.rights(p.Rights)
	for _, fd := range p.Files {
		s.raw(unix.SYS_FCNTL, uintptr(fd), unix.F_SETFD, 0)
	}
	if err := s.execute(p.Path, p.Args); err != nil {
		return 0, nil, err
	}
	pid, finish, err := s.start(process, "net")
	return pid, func() error {
		err := finish()
		if e := (*Error)(nil); errors.As(err, &e) {
			err = fmt.Errorf("start %s in the namespaces of process %d: %w", p.Path, process, e.Err)
		}
		return err
	}, err
}

// rights makes the copy keep the listed capabilities in the program that it then executes. After entering a user
// namespace it has all of them there, but hands on none by itself.
func (s *script) rights(list []uintptr) {
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for _, right := range list {
		data[right/32].Permitted |= 1 << (right % 32)
	}
	for i := range data {
		data[i].Effective, data[i].Inheritable = data[i].Permitted, data[i].Permitted
	}
	s.keep(header)
	s.keep(&data)
	s.raw(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(&data)))
	for _, right := range list {
		s.raw(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, right)
	}
}

func (s *script) execute(path string, words []string) error {
	argv, err := syscall.SlicePtrFromStrings(words)
	if err != nil {
		return err
	}
	envv := new(*byte)
	s.keep(argv)
	s.keep(envv)
	s.raw(unix.SYS_EXECVE, s.text(path), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(envv)))
	return nil
}
