// Package stage is what runs in a sandbox's user and network namespaces, beside
// bwrap and with rights over them: it makes the network, hands the other end of
// it out, and ends.
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

// Main takes the words SOCKET OPTIONS: the descriptor that the ends go to, and
// [link.Options] as JSON. It returns the exit status. What kept it from its work
// goes to the socket.
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
	said, err := json.Marshal(link.Made{Kind: e.kind, Ends: len(e.devices), Ports: e.ports, Inside6: len(e.inside6)})
	if err != nil {
		return err
	}
	rights := unix.UnixRights(slices.Concat(e.devices, e.listeners, e.inside6)...)
	return os.NewSyscallError("sendmsg", unix.Sendmsg(socket, said, rights, nil, 0))
}
