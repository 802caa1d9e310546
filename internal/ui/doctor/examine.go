package doctor

import (
	"context"
	"slices"
	"time"

	"claudebox/internal/nix/nixdaemon"
)

// Machine is what a launch would use of this machine, as its plan says. What
// no plan could be made for is left empty, and not looked at.
type Machine struct {
	Bwrap   string   // the program
	Env     string   // coreutils' env
	Seccomp []byte   // the filter
	Tier    string   // network tier
	Network string   // the program that serves the network; empty: none does
	Paths   []string // files and folders of the store that have to be there
	Fetched []string // packages that a launch would fetch or build first
	Socket  string   // the Nix daemon's
	Local   string   // see [nixdaemon.Options]
	Nix     string   // what Nix uses inside: "own", "host" or "off"
	Home    string   // folder of the agents' homes
	Asks    bool     // a launch would ask on the terminal
}

// examination is a machine with what several looks share.
type examination struct {
	Machine
	client  *nixdaemon.Client // nil: unreachable
	refused error             // why
}

// looks are all there are, in the order in which they are shown. One that
// gives no level has nothing to look at. The one named by after must not have
// failed, as the same fault would be reported twice.
var looks = []struct {
	name  string
	look  func(examination) Finding
	after []string
}{
	{name: "kernel", look: kernel},
	{name: "user namespaces", look: userNamespaces},
	{name: "bwrap", look: bwrap},
	{name: "store", look: storePaths},
	{name: "network helper", look: networkHelper},
	{name: "tun device", look: tun},
	{name: "sandbox", look: sandbox, after: []string{"kernel", "user namespaces", "bwrap", "store", "network helper"}},
	{name: "abstract sockets", look: abstractSockets},
	{name: "terminal input", look: terminalInjection},
	{name: "nix daemon", look: daemon},
	{name: "nix inside", look: nixInside, after: []string{"sandbox"}},
	{name: "state folder", look: homes},
	{name: "confirmation", look: terminal},
}

// daemonWait bounds what the Nix daemon may take for its answers.
const daemonWait = 5 * time.Second

// Examine takes every look at the machine. It changes nothing.
func Examine(m Machine) []Finding {
	e := examination{Machine: m}
	if m.Socket != "" {
		ctx, cancel := context.WithTimeout(context.Background(), daemonWait)
		defer cancel()
		if e.client, e.refused = nixdaemon.Dial(ctx, m.Socket, nixdaemon.Options{Local: m.Local}); e.refused == nil {
			defer e.client.Close()
		}
	}
	var findings []Finding
	failed := map[string]bool{}
	for _, l := range looks {
		if slices.ContainsFunc(l.after, func(name string) bool { return failed[name] }) {
			continue
		}
		f := l.look(e)
		if f.Level == "" {
			continue
		}
		f.Name = l.name
		failed[l.name] = f.Level == Failed
		findings = append(findings, f)
	}
	return findings
}
