package within

import (
	"crypto/rand"
	"unsafe"

	"golang.org/x/sys/unix"
)

// script is a list of system calls, which are made in order. After the first that fails, only those calls are made
// that undo earlier ones. A script is run once.
type script struct {
	calls     []call
	about     string    // the path that the next calls are for
	files     []uintptr // descriptors, by file; the first stands for no file
	kept      []any     // memory that the calls point at
	roomMount int       // the call that mounted over the room, counted from 1
	room      file
	names     map[file]uintptr // of what was made there, and of its mounts
}

// file stands for a descriptor that a call of the script will open; 0: none.
type file int

// empty is the address of an empty path, for calls on a descriptor itself.
var (
	empty   = uintptr(unsafe.Pointer(&noBytes))
	noBytes [1]byte
)

// call is a system call whose arguments are known now, or are files opened by earlier calls.
type call struct {
	step, about string
	number      uintptr
	args        [6]uintptr
	files       [2]file // the first and the third argument, where they are files
	opens       file
	undoes      int     // the call that this one undoes, whatever failed after it, counted from 1; 0: none
	wants       uintptr // the result that the call must return; 0: any
}

const here = ^uintptr(99) // AT_FDCWD

// open opens what lies at a path with O_PATH: at an absolute one, or below an open folder. No link is followed.
func (s *script) open(in int, path string) file {
	from := here
	if in > 0 {
		from = uintptr(in)
	}
	how := &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	s.keep(how)
	return s.opening(call{
		step: "find the file inside", number: unix.SYS_OPENAT2,
		args: [6]uintptr{from, s.text(path), uintptr(unsafe.Pointer(how)), unsafe.Sizeof(*how)},
	})
}

// set writes a limit into its file in an open folder.
func (s *script) set(folder int, limit Setting) {
	s.about = ""
	f := s.opening(call{
		step: "limit " + limit.Name, number: unix.SYS_OPENAT,
		args: [6]uintptr{uintptr(folder), s.text(limit.Name), unix.O_WRONLY | unix.O_CLOEXEC},
	})
	s.add(call{
		step: "limit " + limit.Name, number: unix.SYS_WRITE, wants: uintptr(len(limit.Value)),
		args: [6]uintptr{1: s.text(limit.Value), 2: uintptr(len(limit.Value))}, files: [2]file{f},
	})
	s.close(f)
}

// stat reads the status of a file into status, which is in shared memory.
func (s *script) stat(f file, status *unix.Stat_t) {
	s.add(call{
		step: "look at it", number: unix.SYS_FSTAT, files: [2]file{f},
		args: [6]uintptr{1: uintptr(unsafe.Pointer(status))},
	})
}

// statFS reads the status of a file's file system into status, which is in shared memory.
func (s *script) statFS(f file, status *unix.Statfs_t) {
	s.add(call{
		step: "look at its file system", number: unix.SYS_FSTATFS, files: [2]file{f},
		args: [6]uintptr{1: uintptr(unsafe.Pointer(status))},
	})
}

// bind makes a mount of a file or folder, with all that is mounted in it. It is not attached anywhere yet.
func (s *script) bind(f file) file {
	const all = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
	return s.opening(call{
		step: "bind it", number: unix.SYS_OPEN_TREE, args: [6]uintptr{1: empty, 2: all},
		files: [2]file{f},
	})
}

// readOnly makes a mount, and those in it, read-only.
func (s *script) readOnly(mount file) {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	s.keep(attr)
	s.add(call{
		step: "make it read-only", number: unix.SYS_MOUNT_SETATTR,
		args: [6]uintptr{
			1: empty, 2: unix.AT_EMPTY_PATH | unix.AT_RECURSIVE, 3: uintptr(unsafe.Pointer(attr)),
			4: unsafe.Sizeof(*attr),
		}, files: [2]file{mount},
	})
}

// lay attaches a mount over a file or folder.
func (s *script) lay(mount, over file) {
	s.add(call{
		step: "lay it over the file", number: unix.SYS_MOVE_MOUNT,
		args:  [6]uintptr{1: empty, 3: empty, 4: unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH},
		files: [2]file{mount, over},
	})
	if name, named := s.names[mount]; named {
		s.add(call{
			step: "remove its name", number: unix.SYS_UNLINKAT, args: [6]uintptr{1: name},
			files: [2]file{s.room},
		})
	}
}

// room is a folder of every sandbox over which a file system is mounted for a moment, to make a file in: only a file in
// a mounted file system can be bound. The folder's own content is hidden for some hundred microseconds.
const room = "/run/user"

// mountRoom mounts an empty file system over the room, until unmountRoom.
func (s *script) mountRoom() {
	s.add(call{
		step: "make room for a cover", number: unix.SYS_MOUNT,
		args: [6]uintptr{s.text("tmpfs"), s.text(room), s.text("tmpfs"), unix.MS_NOSUID | unix.MS_NODEV},
	})
	s.roomMount, s.room, s.names = len(s.calls), s.open(0, room), map[file]uintptr{}
}

// unmountRoom undoes mountRoom, even if a call in between failed. Files that are bound stay.
func (s *script) unmountRoom() {
	s.add(call{
		step: "give the room back", number: unix.SYS_UMOUNT2, undoes: s.roomMount,
		args: [6]uintptr{s.text(room), unix.MNT_DETACH},
	})
}

// create makes a file in the room, whose name is removed when a mount of it is laid. An agent may write in the room
// meanwhile. So the file has a name that the agent cannot know beforehand, and is mounted by its descriptor, whatever
// lies under the name by then.
func (s *script) create(content []byte, mode uint32) file {
	name := s.text("bindfile" + rand.Text())
	f := s.opening(call{
		step: "make a cover", number: unix.SYS_OPENAT,
		args:  [6]uintptr{1: name, 2: unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_CLOEXEC, 3: uintptr(mode)},
		files: [2]file{s.room},
	})
	if len(content) > 0 {
		s.keep(&content[0])
		s.add(call{
			step: "write a cover", number: unix.SYS_WRITE, wants: uintptr(len(content)),
			args:  [6]uintptr{1: uintptr(unsafe.Pointer(&content[0])), 2: uintptr(len(content))},
			files: [2]file{f},
		})
	}
	s.names[f] = name
	return f
}

// close closes files, because a process can only have so many open at once.
func (s *script) close(files ...file) {
	for _, f := range files {
		s.add(call{step: "close it", number: unix.SYS_CLOSE, files: [2]file{f}})
	}
}

// opening adds a call that opens a file.
func (s *script) opening(c call) file {
	if len(s.files) == 0 {
		s.files = []uintptr{0}
	}
	c.opens = file(len(s.files))
	s.files = append(s.files, 0)
	s.add(c)
	return c.opens
}

func (s *script) add(c call) {
	c.about = s.about
	s.calls = append(s.calls, c)
}

// raw adds a call without a purpose, whose result is not needed.
func (s *script) raw(number uintptr, args ...uintptr) {
	c := call{number: number}
	copy(c.args[:], args)
	s.add(c)
}

// text returns the address of a string as the kernel takes it, which ends at the first NUL.
func (s *script) text(text string) uintptr {
	p := append([]byte(text), 0)
	s.keep(&p[0])
	return uintptr(unsafe.Pointer(&p[0]))
}

// keep keeps the memory that a call points at alive, and on the heap, where it does not move.
func (s *script) keep(pointer any) { s.kept = append(s.kept, pointer) }
