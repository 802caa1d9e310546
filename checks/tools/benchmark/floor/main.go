// Floor is the least that a Go program can do around bwrap: start it as the
// first process of a user and pid namespace, with the descriptors that it was
// given, wait, and end as it ended. What claudebox costs beyond this is its
// own work; the rest is Go's.
//
// Its words are a descriptor count, the program, and the program's words.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"os"
	"runtime"
	"strconv"
	"syscall"

	"claudebox/internal/linux/spawn"
)

func main() {
	runtime.LockOSThread()
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	p := spawn.Program{Path: os.Args[2], Args: os.Args[3:], PIDs: true}
	for fd := range count {
		p.Files = append(p.Files, fd)
	}
	pid, err := spawn.Start(p)
	if err != nil {
		panic(err)
	}
	var state syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &state, 0, nil); err != nil {
		panic(err)
	}
	os.Exit(state.ExitStatus())
}
