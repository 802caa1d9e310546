// Floor is the least that a Go program can do around bwrap: start it as the
// first process of a user and pid namespace, with the descriptors that it was
// given, wait, and end as it ended. What claudebox costs beyond this is its
// own work; the rest is Go's.
//
// Its words are a descriptor count, the program, and the program's words.
package main

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
)

func main() {
	runtime.LockOSThread()
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	files := make([]uintptr, count)
	for i := range files {
		files[i] = uintptr(i)
	}
	self := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	pid, err := syscall.ForkExec(os.Args[2], os.Args[3:], &syscall.ProcAttr{Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: self(os.Getuid()), GidMappings: self(os.Getgid()),
	}})
	if err != nil {
		panic(err)
	}
	var state syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &state, 0, nil); err != nil {
		panic(err)
	}
	os.Exit(state.ExitStatus())
}
