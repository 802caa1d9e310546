// Package scope describes requests to the user's systemd: for a scope that contains the
// processes of a sandbox and limits the resources that they use together
// (systemd.resource-control(5)). Package systemd carries them out, in claudebox's helper.
package scope

import (
	"path/filepath"
	"strings"
)

// StageName is the argv[0] of claudebox-helper for carrying out one [Request], see package aside.
const StageName = "claudebox-scope"

// Limits are the resources that the processes may use together; 0 means no limit.
type Limits struct {
	Memory int64 // bytes
	Tasks  int   // processes and threads
	CPU    int   // percent of one processor
}

// Request asks for a scope. Without PIDs it only asks whether the user's systemd can be reached.
type Request struct {
	Socket string // of the user's bus, see [Socket]
	Name   string // of the scope
	PIDs   []int
	Limits Limits
}

// Socket returns the path of the socket of the user's bus: that of the first address in DBUS_SESSION_BUS_ADDRESS, else
// "bus" in XDG_RUNTIME_DIR; "" without both. getenv looks up variables of the caller's environment.
func Socket(getenv func(string) (string, bool)) string {
	if address, set := getenv("DBUS_SESSION_BUS_ADDRESS"); set {
		first, _, _ := strings.Cut(address, ";") // further addresses
		first, _, _ = strings.Cut(first, ",")    // further keys of the address
		if path, ok := strings.CutPrefix(first, "unix:path="); ok {
			return path
		}
	}
	if dir, set := getenv("XDG_RUNTIME_DIR"); set && filepath.IsAbs(dir) {
		return filepath.Join(dir, "bus")
	}
	return ""
}
