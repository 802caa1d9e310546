package hostnet

import (
	"os"

	"golang.org/x/sys/unix"

	"claudebox/internal/diag"
	"claudebox/internal/network/netlink"
)

// Watch hears of every change of addresses and routes from its making on.
// Make it before the first [Read], so that no change falls between them.
type Watch struct {
	socket *netlink.Socket
	file   *os.File // the same descriptor, for the runtime to wait on
}

// groups are the changes that count. Links and rules add no address that
// could be reached without an address or a route.
const groups = unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE

// NewWatch begins to listen.
func NewWatch() (*Watch, error) {
	s, err := netlink.Open(unix.NETLINK_ROUTE, groups)
	if err != nil {
		return nil, &diag.Error{Op: "watch this machine's addresses and routes", Err: err}
	}
	return &Watch{socket: s, file: os.NewFile(uintptr(s.FD()), "changes of the network")}, nil
}

// Close ends the watch, and a Wait that waits with it.
func (w *Watch) Close() error { return w.file.Close() }

// Wait blocks, without a thread, until something has changed. That some of it
// was lost is a change as well. It is false when the watch is closed.
func (w *Watch) Wait() bool {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return false
	}
	return raw.Read(func(uintptr) bool {
		told, err := w.socket.Drain()
		return told || err != nil
	}) == nil
}
