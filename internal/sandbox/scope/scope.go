// Package scope is what claudebox asks of the user's systemd: a scope for the
// processes of a sandbox, which holds what they may use together
// (systemd.resource-control(5)). Package systemd does it, in claudebox's helper.
package scope

import (
	"path/filepath"
	"strings"
)

// Word is what the helper is called with, see [Request].
const Word = "claudebox-scope"

// Limits are what the processes may use together; 0: as much as there is.
type Limits struct {
	Memory int64 // bytes
	Tasks  int   // processes and threads
	CPU    int   // percent of one processor
}

// Request asks for a scope. Without processes it asks whether there could be one.
type Request struct {
	Socket string // of the user's bus, see [Socket]
	Name   string
	PIDs   []int
	Limits Limits
}

// Socket is the socket of the user's bus; empty: none is named. getenv gives
// variables of the caller's environment.
func Socket(getenv func(string) (string, bool)) string {
	if address, set := getenv("DBUS_SESSION_BUS_ADDRESS"); set {
		first, _, _ := strings.Cut(address, ";")
		first, _, _ = strings.Cut(first, ",")
		if path, is := strings.CutPrefix(first, "unix:path="); is {
			return path
		}
	}
	if dir, set := getenv("XDG_RUNTIME_DIR"); set && filepath.IsAbs(dir) {
		return filepath.Join(dir, "bus")
	}
	return ""
}
