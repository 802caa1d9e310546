// Package spawn starts a program in namespaces of its own, with no more than it
// needs of this one.
package spawn

import (
	"os"
	"syscall"
)

// Program is what is started.
type Program struct {
	Path  string
	Args  []string // beginning with the program's name; its environment is empty
	Files []int    // what it gets as descriptors 0, 1, 2 …; others must be close-on-exec

	// PIDs makes it the first process of a pid namespace, Network and Mounts give
	// it a network and a mount namespace. With any of them it is in a user
	// namespace, too, in which this user has the same ids as outside and nobody else
	// exists.
	PIDs, Network, Mounts bool
	// Rights are capabilities over its user namespace that it keeps. They are
	// ambient: what it executes has them as well.
	Rights []uintptr
}

// Start starts a program and returns its process id out here when it is
// executed. The program gets SIGKILL when the calling thread ends, so the caller
// must have locked its goroutine to it (PR_SET_PDEATHSIG). With PIDs, one whose
// parent ends before that is arranged for is not killed: it sees no parent, and
// has to wait for a word of it before it does anything.
func Start(p Program) (pid int, err error) {
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, AmbientCaps: p.Rights}
	for _, namespace := range []struct {
		wanted bool
		flag   uintptr
	}{{p.PIDs, syscall.CLONE_NEWPID}, {p.Network, syscall.CLONE_NEWNET}, {p.Mounts, syscall.CLONE_NEWNS}} {
		if namespace.wanted {
			attributes.Cloneflags |= syscall.CLONE_NEWUSER | namespace.flag
		}
	}
	if attributes.Cloneflags != 0 {
		attributes.UidMappings, attributes.GidMappings = oneID(os.Getuid()), oneID(os.Getgid())
	}
	files := make([]uintptr, len(p.Files))
	for i, fd := range p.Files {
		files[i] = uintptr(fd)
	}
	return syscall.ForkExec(p.Path, p.Args, &syscall.ProcAttr{Files: files, Sys: attributes})
}

// oneID maps an id to itself.
func oneID(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
}
