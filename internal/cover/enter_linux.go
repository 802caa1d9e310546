package cover

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// room is a folder of every sandbox over which a file system is mounted for a
// moment, to make a cover in: a file cannot be mounted before it lies
// somewhere. What is in it is gone for some hundred microseconds. The agent may
// write there meanwhile: the cover has a name that it cannot know before, and
// is mounted by its descriptor, whatever lies under that name by then.
const room = "/run/user"

// tries is how often a cover is made before it counts as impossible: an agent
// that is quick enough may remove one before it is mounted.
const tries = 20

// job is all that the forked process works with. It is made before the fork:
// afterwards nothing can be allocated.
type job struct {
	user, mount        uintptr // namespaces
	target             *byte
	content            []byte // nil: cover the file with itself
	folder             bool   // cover a folder, with an empty one
	room, file, kind   *byte
	empty              *byte
	how                unix.OpenHow
	attr               unix.MountAttr
	found, tree, wrote uintptr // descriptors
}

// steps are what the forked process does, by the exit status with which it
// says where it stopped.
var steps = []string{
	"", "enter the user namespace", "enter the mount namespace", "find the file inside", "make room for a cover", "make a cover",
	"write a cover", "take the cover", "make it read-only", "lay it over the file",
}

// over covers a file inside the sandbox of a process: with content, or, if
// that is nil, with itself; in both cases read-only. A folder is covered with
// an empty one, or with itself.
func over(process int, path string, folder bool, content []byte) error {
	mount, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", process))
	if err != nil {
		return err
	}
	defer mount.Close()
	// The owner of the mount namespace, not what the agent is in: that lies
	// below it (bwrap --disable-userns).
	user, err := unix.IoctlRetInt(int(mount.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return fmt.Errorf("find the sandbox's user namespace: %w", err)
	}
	defer unix.Close(user)
	j := &job{user: uintptr(user), mount: mount.Fd(), content: content, folder: folder}
	j.how = unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	j.attr = unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	for _, text := range []struct {
		to   **byte
		text string
	}{{&j.target, path}, {&j.room, room}, {&j.kind, "tmpfs"}, {&j.empty, ""}} {
		if *text.to, err = unix.BytePtrFromString(text.text); err != nil {
			return err
		}
	}
	for range tries {
		if j.file, err = unix.BytePtrFromString(room + "/" + rand.Text()); err != nil {
			return err
		}
		if err = j.wait(j.fork()); err == nil {
			break
		}
	}
	return err
}

// wait gives what kept the forked process from doing its job.
func (j *job) wait(pid int, err error) error {
	var status unix.WaitStatus
	for err == nil {
		if _, err = unix.Wait4(pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
		err = nil
	}
	switch {
	case err != nil:
		return err
	case !status.Exited() || status.ExitStatus() >= len(steps):
		return errors.New("cannot enter the sandbox")
	case status.ExitStatus() > 0:
		return errors.New("cannot " + steps[status.ExitStatus()])
	}
	return nil
}

// fork starts a process that does the job. It has one thread, and this one's
// memory as it is now. Signals are kept from it: Go could not handle them.
func (j *job) fork() (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return 0, err
	}
	pid, errno := j.clone()
	runtime.KeepAlive(j)
	err := unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	if errno != 0 {
		err = errno
	}
	return int(pid), err
}

// clone returns in the parent only.
//
//go:norace
//go:nosplit
func (j *job) clone() (uintptr, unix.Errno) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		status := j.do()
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, status, 0, 0)
		}
	}
	return pid, errno
}

// do is the job; it gives the step at which it stopped, or 0. Nothing here may
// allocate, grow the stack or take a lock: another thread may have held it when
// the process was forked.
//
//go:norace
//go:nosplit
func (j *job) do() uintptr {
	const here = ^uintptr(99) // AT_FDCWD
	var errno unix.Errno
	if _, _, errno = unix.RawSyscall(unix.SYS_SETNS, j.user, unix.CLONE_NEWUSER, 0); errno != 0 {
		return 1
	}
	if _, _, errno = unix.RawSyscall(unix.SYS_SETNS, j.mount, unix.CLONE_NEWNS, 0); errno != 0 {
		return 2
	}
	j.found, _, errno = unix.RawSyscall6(unix.SYS_OPENAT2, here, uintptr(unsafe.Pointer(j.target)), uintptr(unsafe.Pointer(&j.how)), unsafe.Sizeof(j.how), 0, 0)
	if errno != 0 {
		return 3
	}
	if j.content == nil {
		j.tree, _, errno = unix.RawSyscall(unix.SYS_OPEN_TREE, j.found, uintptr(unsafe.Pointer(j.empty)), unix.OPEN_TREE_CLONE|unix.AT_EMPTY_PATH)
	} else if step := j.make(here); step != 0 {
		return step
	}
	if errno != 0 {
		return 7
	}
	_, _, errno = unix.RawSyscall6(unix.SYS_MOUNT_SETATTR, j.tree, uintptr(unsafe.Pointer(j.empty)), unix.AT_EMPTY_PATH, uintptr(unsafe.Pointer(&j.attr)), unsafe.Sizeof(j.attr), 0)
	if errno != 0 {
		return 8
	}
	_, _, errno = unix.RawSyscall6(unix.SYS_MOVE_MOUNT, j.tree, uintptr(unsafe.Pointer(j.empty)), j.found, uintptr(unsafe.Pointer(j.empty)), unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH, 0)
	if errno != 0 {
		return 9
	}
	return 0
}

// make makes a cover with content, in a file system of its own.
//
//go:norace
//go:nosplit
func (j *job) make(here uintptr) uintptr {
	var errno unix.Errno
	_, _, errno = unix.RawSyscall6(unix.SYS_MOUNT, uintptr(unsafe.Pointer(j.kind)), uintptr(unsafe.Pointer(j.room)), uintptr(unsafe.Pointer(j.kind)), unix.MS_NOSUID|unix.MS_NODEV, 0, 0)
	if errno != 0 {
		return 4
	}
	step := j.write(here)
	unix.RawSyscall(unix.SYS_UMOUNT2, uintptr(unsafe.Pointer(j.room)), unix.MNT_DETACH, 0)
	return step
}

//go:norace
//go:nosplit
func (j *job) write(here uintptr) uintptr {
	var errno unix.Errno
	if j.folder {
		j.tree, _, errno = unix.RawSyscall(unix.SYS_OPEN_TREE, here, uintptr(unsafe.Pointer(j.room)), unix.OPEN_TREE_CLONE)
		if errno != 0 {
			return 7
		}
		return 0
	}
	j.wrote, _, errno = unix.RawSyscall6(unix.SYS_OPENAT, here, uintptr(unsafe.Pointer(j.file)), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o444, 0, 0)
	if errno != 0 {
		return 5
	}
	if len(j.content) > 0 {
		n, _, errno := unix.RawSyscall(unix.SYS_WRITE, j.wrote, uintptr(unsafe.Pointer(&j.content[0])), uintptr(len(j.content)))
		if errno != 0 || n != uintptr(len(j.content)) {
			return 6
		}
	}
	j.tree, _, errno = unix.RawSyscall(unix.SYS_OPEN_TREE, j.wrote, uintptr(unsafe.Pointer(j.empty)), unix.OPEN_TREE_CLONE|unix.AT_EMPTY_PATH)
	if errno != 0 {
		return 7
	}
	return 0
}
