// Package spawn starts a program in namespaces of its own, with only those resources of this process that it needs.
package spawn

import (
	"os"
	"syscall"
)

// Program describes a program to start.
type Program struct {
	Path  string
	Args  []string // beginning with the program's name; its environment is empty
	Files []int    // what it gets as descriptors 0, 1, 2 …; all others of this process must be close-on-exec

	// PIDs makes it the first process of a new pid namespace; Network and Mounts give it a new network and a new
	// mount namespace. With any of them it gets a new user namespace, too, in which this user has the same ids as
	// outside and nobody else exists.
	PIDs, Network, Mounts bool
	// Rights are the capabilities over its user namespace that it keeps. They are ambient: programs that it executes
	// have them as well.
	Rights []uintptr
}

// Start starts a program and returns its process id, as seen from here, once it has been executed. The kernel sends
// the program SIGKILL when the calling thread ends (PR_SET_PDEATHSIG), so the caller must have locked its goroutine
// to the thread. With PIDs, a program whose parent ends before that is set up is not killed: it cannot see its
// parent, so it must wait for a message from it before it does anything.
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
