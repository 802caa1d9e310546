// Package stage is what runs in a sandbox's namespaces before bwrap does, in
// its place and with all rights over them: it makes the network, hands the other
// end of it out, gives the rights up, and becomes bwrap.
package stage

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"claudebox/internal/network/link"
)

// Main takes the words SOCKET OPTIONS PROGRAM ARGUMENT…: the descriptor that the
// ends go to, [link.Options] as JSON, and what it becomes. It returns the exit
// status when it does not. What kept it from it goes to the socket.
func Main(words []string) int {
	const status = 125
	if len(words) < 4 {
		return status
	}
	socket, err := strconv.Atoi(words[0])
	if err != nil {
		return status
	}
	unix.CloseOnExec(socket)
	if err := run(socket, words[1], words[2], words[3:]); err != nil {
		_ = unix.Sendmsg(socket, []byte(link.Failed+err.Error()), nil, nil, 0)
	}
	return status
}

func run(socket int, options, program string, arguments []string) error {
	runtime.LockOSThread()
	var o link.Options
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return err
	}
	e, err := makeNetwork(o)
	if err != nil {
		return err
	}
	said, err := json.Marshal(link.Made{Kind: e.kind, Ends: len(e.devices), Ports: e.ports, Inside6: len(e.inside6)})
	if err != nil {
		return err
	}
	rights := unix.UnixRights(slices.Concat(e.devices, e.listeners, e.inside6)...)
	if err := unix.Sendmsg(socket, said, rights, nil, 0); err != nil {
		return os.NewSyscallError("sendmsg", err)
	}
	if err := keep(o.Rights); err != nil {
		return err
	}
	numberFromTwo()
	return os.NewSyscallError("execve", syscall.Exec(program, arguments, []string{}))
}

// numberFromTwo makes the next process of this pid namespace its second: bwrap's
// child, which bwrap looks up in the host's /proc (launch.CanOwnPIDs). This
// program's threads have taken the numbers behind, and end when it becomes bwrap.
// It fails where there is no pid namespace of our own, and does not matter there.
func numberFromTwo() {
	fd, err := unix.Open("/proc/sys/kernel/ns_last_pid", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, _ = unix.Write(fd, []byte("1"))
		_ = unix.Close(fd)
	}
}

// keep leaves these capabilities to what is executed next, and no others.
func keep(rights []uintptr) error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	for _, right := range rights {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, right, 0, 0); err != nil {
			return os.NewSyscallError("prctl", err)
		}
	}
	return nil
}
