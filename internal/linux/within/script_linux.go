package within

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/fork"
)

// Script is a list of system calls. They are made in order; the first that
// fails is the last, but for those that undo what was done. A Script is run
// once.
type Script struct {
	calls     []call
	about     string    // what the next calls are for
	files     []uintptr // descriptors; the first stands for no file
	kept      []any     // what the calls point at
	answers   []answer
	furnished int // the call that mounted over the room, counted from 1
	room      File
	made      map[File]uintptr // the names of files that were made there, by their mounts
}

// File is a descriptor that a call of the script will open; 0: none.
type File int

// empty is the path of a file that is named by its descriptor.
var (
	empty   = uintptr(unsafe.Pointer(&noBytes))
	noBytes [1]byte
)

// answer is what a call writes for the caller: in shared memory, and from there
// to where the caller wants it.
type answer struct {
	call   int // by its second argument
	to, in []byte
}

// call is a system call whose arguments are known, or are files.
type call struct {
	step, about string
	number      uintptr
	args        [6]uintptr
	files       [2]File // the first and the third argument, where they are files
	opens       File
	undoes      int     // the call that this one undoes, whatever failed after it, counted from 1; 0: none
	wants       uintptr // the result that the call must have, where it is not an error; 0: any
}

const here = ^uintptr(99) // AT_FDCWD

// About names what the following calls are for, in errors.
func (s *Script) About(what string) { s.about = what }

// Open opens what lies at an absolute path, for its place alone. No link is
// followed.
func (s *Script) Open(path string) File {
	how := &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	s.keep(how)
	return s.opening(call{
		step: "find the file inside", number: unix.SYS_OPENAT2,
		args: [6]uintptr{here, s.text(path), uintptr(unsafe.Pointer(how)), unsafe.Sizeof(*how)},
	})
}

// Stat looks at a file. status is filled in when the script has run.
func (s *Script) Stat(f File, status *unix.Stat_t) {
	s.add(call{step: "look at it", number: unix.SYS_FSTAT, files: [2]File{f}})
	s.answer(unsafe.Slice((*byte)(unsafe.Pointer(status)), unsafe.Sizeof(*status)))
}

// StatFS looks at the file system of a file.
func (s *Script) StatFS(f File, status *unix.Statfs_t) {
	s.add(call{step: "look at its file system", number: unix.SYS_FSTATFS, files: [2]File{f}})
	s.answer(unsafe.Slice((*byte)(unsafe.Pointer(status)), unsafe.Sizeof(*status)))
}

// answer has the last call write to a place of the caller's.
func (s *Script) answer(to []byte) {
	s.answers = append(s.answers, answer{call: len(s.calls) - 1, to: to})
}

// Bind makes a mount of a file or folder, with all that is mounted in it. It
// lies nowhere yet.
func (s *Script) Bind(f File) File {
	const all = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
	return s.opening(call{
		step: "bind it", number: unix.SYS_OPEN_TREE, args: [6]uintptr{1: empty, 2: all},
		files: [2]File{f},
	})
}

// ReadOnly makes a mount, and those in it, read-only. This needs Linux 5.12.
func (s *Script) ReadOnly(mount File) {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	s.keep(attr)
	s.add(call{
		step: "make it read-only", number: unix.SYS_MOUNT_SETATTR,
		args: [6]uintptr{
			1: empty, 2: unix.AT_EMPTY_PATH | unix.AT_RECURSIVE, 3: uintptr(unsafe.Pointer(attr)),
			4: unsafe.Sizeof(*attr),
		}, files: [2]File{mount},
	})
}

// Lay lays a mount over a file or folder.
func (s *Script) Lay(mount, over File) {
	s.add(call{
		step: "lay it over the file", number: unix.SYS_MOVE_MOUNT,
		args:  [6]uintptr{1: empty, 3: empty, 4: unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH},
		files: [2]File{mount, over},
	})
	if name, made := s.made[mount]; made {
		s.add(call{
			step: "remove its name", number: unix.SYS_UNLINKAT, args: [6]uintptr{1: name},
			files: [2]File{s.room},
		})
	}
}

// Room is a folder of every sandbox over which a file system is mounted for a
// moment, to make a file in: one cannot be mounted before it lies somewhere.
// What is in the folder is gone for some hundred microseconds.
const Room = "/run/user"

// Furnish mounts an empty file system over the [Room], until [Script.Clear].
func (s *Script) Furnish() {
	s.add(call{
		step: "make room for a cover", number: unix.SYS_MOUNT,
		args: [6]uintptr{s.text("tmpfs"), s.text(Room), s.text("tmpfs"), unix.MS_NOSUID | unix.MS_NODEV},
	})
	s.furnished, s.room, s.made = len(s.calls), s.Open(Room), map[File]uintptr{}
}

// Clear gives the room back, whatever has failed since. Files of it that are
// bound stay.
func (s *Script) Clear() {
	s.add(call{
		step: "give the room back", number: unix.SYS_UMOUNT2, undoes: s.furnished,
		args: [6]uintptr{s.text(Room), unix.MNT_DETACH},
	})
}

// Made makes a file in the room, where none of that name may be, and binds it.
// It loses its name when the mount is laid. Bits of the mode that the caller's
// umask forbids are not set. When the script has run, status is the file's.
func (s *Script) Made(name string, content []byte, mode uint32, status *unix.Stat_t) File {
	at := s.text(name)
	f := s.opening(call{
		step: "make a cover", number: unix.SYS_OPENAT,
		args:  [6]uintptr{1: at, 2: unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_CLOEXEC, 3: uintptr(mode)},
		files: [2]File{s.room},
	})
	if len(content) > 0 {
		s.keep(&content[0])
		s.add(call{
			step: "write a cover", number: unix.SYS_WRITE, wants: uintptr(len(content)),
			args:  [6]uintptr{1: uintptr(unsafe.Pointer(&content[0])), 2: uintptr(len(content))},
			files: [2]File{f},
		})
	}
	s.Stat(f, status)
	mount := s.Bind(f)
	s.made[mount] = at
	s.Close(f)
	return mount
}

// Close closes files: a script can have as many open at once as a process can.
func (s *Script) Close(files ...File) {
	for _, f := range files {
		s.add(call{step: "close it", number: unix.SYS_CLOSE, files: [2]File{f}})
	}
}

// opening adds a call that opens a file.
func (s *Script) opening(c call) File {
	if len(s.files) == 0 {
		s.files = []uintptr{0}
	}
	c.opens = File(len(s.files))
	s.files = append(s.files, 0)
	s.add(c)
	return c.opens
}

func (s *Script) add(c call) {
	c.about = s.about
	s.calls = append(s.calls, c)
}

// text gives a string as the kernel takes it. One with a NUL ends there.
func (s *Script) text(text string) uintptr {
	p := append([]byte(text), 0)
	s.keep(&p[0])
	return uintptr(unsafe.Pointer(&p[0]))
}

// keep keeps what a call points at where it is, on the heap.
func (s *Script) keep(pointer any) { s.kept = append(s.kept, pointer) }

// run makes the calls, in a copy of this process. It returns the first that
// failed.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s *Script) run() (failed int, errno syscall.Errno) {
	for i := range s.calls {
		c := &s.calls[i]
		if errno != 0 && (c.undoes == 0 || c.undoes > failed) {
			continue
		}
		args := &c.args
		if c.files[0] > 0 {
			args[0] = s.files[c.files[0]]
		}
		if c.files[1] > 0 {
			args[2] = s.files[c.files[1]]
		}
		got, _, err := syscall.RawSyscall6(c.number, args[0], args[1], args[2], args[3], args[4], args[5])
		if err == 0 && c.wants != 0 && got != c.wants {
			err = syscall.EIO
		}
		if err != 0 && errno == 0 {
			failed, errno = i, err
		}
		if c.opens > 0 {
			s.files[c.opens] = got
		}
	}
	return failed, errno
}

// ErrGone means that the sandbox has ended.
var ErrGone = errors.New("the sandbox has ended")

// Error says which call of a script failed, and what for.
type Error struct {
	About string // what the call was for; may be empty
	Step  string // what failed, as in "cannot STEP"
	Err   error
}

func (e *Error) Error() string {
	text := "cannot " + e.Step + ": " + e.Err.Error()
	if e.About != "" {
		text = e.About + ": " + text
	}
	return text
}

// Unwrap returns the system call's error.
func (e *Error) Unwrap() error { return e.Err }

// Run runs a script in the mount namespace of a process, and in the user
// namespace that owns that: not the one the process is in, which may lie below
// it (bwrap --disable-userns). It fails with [ErrGone] when there is no such
// process any more.
func Run(process int, s *Script) error {
	mount, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", process))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	defer mount.Close()
	user, err := unix.IoctlRetInt(int(mount.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return fmt.Errorf("find the sandbox's user namespace: %w", err)
	}
	defer unix.Close(user)
	size := int(unsafe.Sizeof(outcome{}))
	for _, a := range s.answers {
		size += len(a.to)
	}
	shared, err := fork.Shared(size)
	if err != nil {
		return err
	}
	defer unix.Munmap(shared)
	c := &copied{script: s, user: uintptr(user), mount: mount.Fd(), outcome: (*outcome)(unsafe.Pointer(&shared[0]))}
	rest := shared[unsafe.Sizeof(outcome{}):]
	for i := range s.answers {
		a := &s.answers[i]
		a.in, rest = rest[:len(a.to)], rest[len(a.to):]
		s.calls[a.call].args[1] = uintptr(unsafe.Pointer(&a.in[0]))
	}
	pid, err := fork.Start(c.fork)
	if err == nil {
		err = fork.Wait(pid)
	}
	if err != nil {
		return err
	}
	for _, a := range s.answers {
		copy(a.to, a.in)
	}
	switch {
	case c.outcome.errno == 0:
		return nil
	case c.outcome.failed < 0:
		return &Error{Step: "enter the sandbox", Err: c.outcome.errno}
	}
	failed := s.calls[c.outcome.failed]
	return &Error{About: failed.about, Step: failed.step, Err: c.outcome.errno}
}

// copied is the copy of this process that runs a script. It writes to the
// outcome and to the script's answers, which are shared.
type copied struct {
	script      *Script
	user, mount uintptr // namespaces
	outcome     *outcome
}

// outcome is how a script ended.
type outcome struct {
	failed int // the call; -1: before the first
	errno  syscall.Errno
}

// fork returns in this process only. The copy runs the script, and ends: no
// allocation, no stack growth, no Go runtime (see package fork).
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (c *copied) fork() (pid uintptr, errno syscall.Errno) {
	pid, errno = fork.Fork(0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	c.outcome.failed = -1
	_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, c.user, unix.CLONE_NEWUSER, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_SETNS, c.mount, unix.CLONE_NEWNS, 0)
	}
	if c.outcome.errno = errno; errno == 0 {
		c.outcome.failed, c.outcome.errno = c.script.run()
	}
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
