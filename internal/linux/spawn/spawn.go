// Package spawn starts a program in namespaces of its own, with no more than it
// needs of this one.
//
// [syscall.ForkExec] does the same, and copies the page tables of this process
// for it, as soon as there is a user namespace: its parent writes the id maps
// while the child waits. A child can write its own (user_namespaces(7)), so
// here it borrows the memory of its parent until it executes, as vfork(2) has
// it. That is a third of what claudebox spends before bwrap runs.
package spawn

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/linux/spawn/nofile"
	"claudebox/internal/linux/spawn/vfork"
)

// Program is what is started.
type Program struct {
	Path  string
	Args  []string // beginning with the program's name; its environment is empty
	Files []int    // what it gets as descriptors 0, 1, 2 …; others must be close-on-exec

	// PIDs makes it the first process of a pid namespace, Network gives it a
	// network namespace. With either it is in a user namespace, too, in which
	// this user is who he is outside and nobody else exists.
	PIDs, Network bool
	// Mounts are made before it runs, in a mount namespace of its own.
	Mounts []Mount
	// Beside is started when the mounts are made, in the same namespaces and with
	// the right to mount, and nobody waits for it. Of its fields Path, Args and
	// Files count; it gets the files under the numbers that they have here, and
	// the standard ones. Needs a pid namespace, which ends it.
	Beside *Program
	// Raised leaves it the limit of open files that this process has. Go raises
	// that for itself; without Raised the program gets what claudebox was
	// started with.
	Raised bool
	// Processes is how many processes and threads may be in its user namespace,
	// and in those that it makes; 0: as many as this user may have. The kernel
	// counts them there by itself (since 5.14): it says nothing of this user's
	// others. Needs PIDs or Network.
	Processes uint64
}

// Mount is a call of mount(2), on a folder that is made first where Make says
// so.
type Mount struct {
	Source, Target, Kind, Options string
	Flags                         uintptr
	Make                          bool
}

// Error says which step failed. The steps are system calls, and the namespaces
// are those of clone(2).
type Error struct {
	Step string
	Err  error
}

func (e *Error) Error() string { return e.Step + ": " + e.Err.Error() }

// Unwrap gives the error number.
func (e *Error) Unwrap() error { return e.Err }

// Start starts a program. It gets SIGKILL when the calling thread ends, so the
// caller must have locked its goroutine to it (PR_SET_PDEATHSIG). Start returns
// when the program is executed, with its process id out here.
func Start(p Program) (pid int, err error) {
	c, err := newChild(p)
	if err != nil {
		return 0, err
	}
	if pid, err = c.start(); err != nil {
		return 0, err
	}
	if c.errno != 0 {
		var state syscall.WaitStatus
		_, _ = syscall.Wait4(pid, &state, 0, nil) // it has ended, by its own word
		return 0, &Error{steps[c.step], c.errno}
	}
	return pid, nil
}

// newChild gets everything ready that a child must not make itself: it cannot
// allocate.
func newChild(p Program) (*child, error) {
	if len(p.Files) > maxFiles || len(p.Args) == 0 {
		return nil, &Error{"count the descriptors", syscall.E2BIG}
	}
	c := &child{files: p.Files, spare: make([]int, len(p.Files)), flags: vfork.Borrowing}
	if p.PIDs {
		c.flags |= unix.CLONE_NEWUSER | unix.CLONE_NEWPID
	}
	if p.Network {
		c.flags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNET
	}
	if !p.Raised && nofile.AtStart.Hard != 0 {
		c.limits = append(c.limits, limit{syscall.RLIMIT_NOFILE, nofile.AtStart})
	}
	if p.Processes != 0 {
		c.limits = append(c.limits, limit{unix.RLIMIT_NPROC, nofile.Limit{Soft: p.Processes, Hard: p.Processes}})
	}
	var err error
	if c.path, err = syscall.BytePtrFromString(p.Path); err != nil {
		return nil, &Error{"read the path", err}
	}
	if c.argv, err = syscall.SlicePtrFromStrings(p.Args); err != nil {
		return nil, &Error{"read the arguments", err}
	}
	if err := c.prepareMounts(p.Mounts); err != nil {
		return nil, err
	}
	if p.Beside != nil {
		if c.beside, err = newChild(Program{Path: p.Beside.Path, Args: p.Beside.Args, Files: p.Beside.Files}); err != nil {
			return nil, err
		}
	}
	if c.flags&unix.CLONE_NEWUSER == 0 {
		return c, nil
	}
	for _, m := range []struct{ file, text string }{
		{"/proc/self/setgroups", "deny"}, // before a gid map that is not root's
		{"/proc/self/gid_map", oneID(os.Getgid())},
		{"/proc/self/uid_map", oneID(os.Getuid())},
	} {
		c.maps = append(c.maps, idMap{file: append([]byte(m.file), 0), text: []byte(m.text)})
	}
	return c, nil
}

// prepareMounts writes the mounts down as the kernel takes them.
func (c *child) prepareMounts(mounts []Mount) error {
	if len(mounts) > 0 {
		c.flags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	}
	for _, m := range mounts {
		call := mountCall{flags: m.Flags, make: m.Make}
		for _, text := range []struct {
			to   **byte
			from string
		}{{&call.source, m.Source}, {&call.target, m.Target}, {&call.kind, m.Kind}, {&call.options, m.Options}} {
			var err error
			if *text.to, err = syscall.BytePtrFromString(text.from); err != nil {
				return &Error{"read a mount", err}
			}
		}
		c.mounts = append(c.mounts, call)
	}
	return nil
}

// oneID maps an id to itself.
func oneID(id int) string { return fmt.Sprintf("%d %d 1", id, id) }

// start makes the child and waits until it has executed or ended.
func (c *child) start() (int, error) {
	if err := unix.Pipe2(c.life[:], unix.O_CLOEXEC); err != nil {
		return 0, &Error{"pipe2", err}
	}
	defer unix.Close(c.life[0])
	defer unix.Close(c.life[1])
	syscall.ForkLock.Lock() // no descriptor without close-on-exec appears
	defer syscall.ForkLock.Unlock()
	pid, errno := c.fork()
	if errno != 0 {
		return 0, &Error{"clone " + strconv.FormatUint(uint64(c.flags), 16), errno}
	}
	return int(pid), nil
}
