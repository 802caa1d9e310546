// Package stage is the program that makes a sandbox's network. It runs beside bwrap, in the sandbox's user and
// network namespaces and with capabilities over them. It makes the network, sends the descriptors of
// its other end to claudebox, and ends.
package stage

import (
	"encoding/json"
	"os"
	"runtime"
	"strconv"

	"claudebox/internal/network/link"
)

// Main makes a network and returns the exit status. words are SOCKET OPTIONS: the descriptor of the socket to
// claudebox, and [link.Options] as JSON. It sends a [link.Network] with descriptors to the socket.
func Main(words []string) int {
	const status = 125
	if len(words) != 2 {
		return status
	}
	socket, err := strconv.Atoi(words[0])
	if err != nil {
		return status
	}
	conn, err := link.Open(os.NewFile(uintptr(socket), "claudebox"))
	if err != nil {
		return status
	}
	runtime.LockOSThread()
	var o link.Options
	var n network
	if err = json.Unmarshal([]byte(words[1]), &o); err == nil {
		n, err = makeNetwork(o)
	}
	if err != nil {
		n = network{Network: link.Network{Error: err.Error()}}
	}
	if conn.Send(n.Network, n.fds...) != nil {
		return status
	}
	return 0
}
