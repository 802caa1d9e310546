package spawn

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/fork"
)

// ErrGone means that the process whose namespaces were to be entered has ended.
var ErrGone = errors.New("the process has ended")

// Join starts a program in the user and network namespaces of a process of this
// user's, beside it: in everything else the program is where this process is. It
// has an empty environment, the standard descriptors and the files, each under its
// own number, and Rights over that user namespace. Every signal is blocked in it.
//
// Join does not wait for its beginning. The caller calls ended, which waits for its
// end, and says what went wrong if the status is not 0.
func Join(process int, p Program) (ended func() error, err error) {
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", process))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	defer network.Close()
	user, err := unix.IoctlRetInt(int(network.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return nil, os.NewSyscallError("ioctl NS_GET_USERNS", err)
	}
	defer unix.Close(user)
	j := &joining{}
	j.call(unix.SYS_SETNS, uintptr(user), unix.CLONE_NEWUSER)
	j.call(unix.SYS_SETNS, network.Fd(), unix.CLONE_NEWNET)
	j.rights(p.Rights)
	for _, fd := range p.Files {
		j.call(unix.SYS_FCNTL, uintptr(fd), unix.F_SETFD, 0)
	}
	if err := j.execute(p.Path, p.Args); err != nil {
		return nil, err
	}
	shared, err := fork.Shared(int(unsafe.Sizeof(*j.failed)))
	if err != nil {
		return nil, err
	}
	j.failed = (*syscall.Errno)(unsafe.Pointer(&shared[0]))
	pid, err := fork.Start(j.fork)
	runtime.KeepAlive(j.kept)
	return func() error {
		defer unix.Munmap(shared)
		err := fork.Wait(pid)
		if *j.failed != 0 {
			return fmt.Errorf("start %s in the namespaces of process %d: %w", p.Path, process, *j.failed)
		}
		return err
	}, err
}

// joining is the way of a copy of this process into the namespaces and to the
// program: system calls, the last of which does not return.
type joining struct {
	calls  [][4]uintptr   // number and arguments
	kept   []any          // what they point at
	failed *syscall.Errno // shared; why one failed
}

func (j *joining) call(number uintptr, arguments ...uintptr) {
	call := [4]uintptr{number}
	copy(call[1:], arguments)
	j.calls = append(j.calls, call)
}

// rights keeps capabilities over what the copy then executes. It has all of them
// over a user namespace that it has entered, and none that it would hand on.
func (j *joining) rights(list []uintptr) {
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for _, right := range list {
		data[right/32].Permitted |= 1 << (right % 32)
	}
	for i := range data {
		data[i].Effective, data[i].Inheritable = data[i].Permitted, data[i].Permitted
	}
	j.kept = append(j.kept, header, &data)
	j.call(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(&data)))
	for _, right := range list {
		j.call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, right)
	}
}

func (j *joining) execute(path string, words []string) error {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(words)
	if err != nil {
		return err
	}
	envv := new(*byte)
	j.kept = append(j.kept, name, argv, envv)
	j.call(unix.SYS_EXECVE,
		uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(envv)))
	return nil
}

//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (j *joining) fork() (pid uintptr, errno syscall.Errno) {
	pid, errno = fork.Fork(0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	for i := range j.calls {
		c := &j.calls[i]
		if _, _, errno = syscall.RawSyscall6(c[0], c[1], c[2], c[3], 0, 0, 0); errno != 0 {
			break
		}
	}
	*j.failed = errno
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 1, 0, 0)
	}
}
