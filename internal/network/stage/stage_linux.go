// Package stage is the program that makes a sandbox's network. It runs beside bwrap, in the sandbox's user and
// network namespaces and with capabilities over them. It makes the network, sends the descriptors of
// its other end to claudebox, and ends.
package stage

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"claudebox/internal/network/link"
)

// Main makes a network and returns the exit status. words are SOCKET OPTIONS: the descriptor of the socket to
// claudebox, and [link.Options] as JSON. It sends a [link.Made] with descriptors to the socket, or
// [link.Failed] with the reason.
func Main(words []string) int {
	const status = 125
	if len(words) != 2 {
		return status
	}
	socket, err := strconv.Atoi(words[0])
	if err != nil {
		return status
	}
	if err := run(socket, words[1]); err != nil {
		_ = unix.Sendmsg(socket, []byte(link.Failed+err.Error()), nil, nil, 0)
	}
	return 0
}

func run(socket int, options string) error {
	runtime.LockOSThread()
	var o link.Options
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return err
	}
	e, err := makeNetwork(o)
	if err != nil {
		return err
	}
	said, err := json.Marshal(link.Made{Kind: e.kind, Ports: e.ports, Sockets6: len(e.inside6)})
	if err != nil {
		return err
	}
	rights := unix.UnixRights(slices.Concat([]int{e.device}, e.listeners, e.inside6)...)
	return os.NewSyscallError("sendmsg", unix.Sendmsg(socket, said, rights, nil, 0))
}
