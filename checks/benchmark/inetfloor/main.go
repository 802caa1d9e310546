// Inetfloor is the least that a Go program can do for a network by pasta:
// start bwrap as the first process of a user, a pid and a network namespace,
// let pasta connect that beside it, let the agent go when both are done, wait,
// and end as it ended. There are no rules: the agent reaches all.
//
// bwrap waits for its filter of system calls, from the descriptor behind those
// that are counted. The words are pasta, a file with that filter, the count,
// bwrap, and bwrap's words.
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
	pasta, filter := os.Args[1], must(os.ReadFile(os.Args[2]))
	count := must(strconv.Atoi(os.Args[3]))
	held, gate := pipe()
	ready, told := pipe()
	p := spawn.Program{Path: os.Args[4], Args: os.Args[5:], PIDs: true, Network: true}
	for fd := range count {
		p.Files = append(p.Files, fd)
	}
	p.Files = append(p.Files, held)
	pid := must(spawn.Start(p))
	must(spawn.Start(spawn.Program{Path: pasta, Files: []int{0, told, 2}, Args: []string{
		"pasta", "--config-net", "-q", "-f", "-P", "/proc/self/fd/1", "-t", "none", "-u", "none", "-T", "none", "-U", "none", "--no-map-gw",
		"-I", "cb0", "-a", "192.0.2.2", "-n", "24", "-g", "192.0.2.1", "-a", "2001:db8:cb::2", "-g", "fe80::1", strconv.Itoa(pid),
	}}))
	must(0, syscall.Close(told))
	if must(syscall.Read(ready, make([]byte, 1))) == 0 {
		panic("pasta ended")
	}
	must(syscall.Write(gate, filter))
	must(0, syscall.Close(gate))
	var state syscall.WaitStatus
	must(syscall.Wait4(pid, &state, 0, nil))
	os.Exit(state.ExitStatus())
}

func pipe() (out, in int) {
	var fds [2]int
	must(0, syscall.Pipe2(fds[:], syscall.O_CLOEXEC))
	return fds[0], fds[1]
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
