package doctor

import (
	"context"
	"slices"
	"time"

	"claudebox/internal/nix/nixdaemon"
)

// Machine is what a launch would use of this machine, as its plan says. Where no
// plan could be made its fields are empty, and what they name is not looked at.
type Machine struct {
	Bwrap      string   // the program
	Env        string   // coreutils' env
	Seccomp    []byte   // the filter
	Tier       string   // network tier
	Network    string   // the program that serves the network; empty: none does
	Paths      []string // files and folders of the store that have to be there
	Fetched    []string // packages that a launch would fetch or build first
	Socket     string   // the Nix daemon's
	Local      string   // see [nixdaemon.Options]
	Nix        string   // what Nix uses inside: "own", "host" or "off"
	AgentHomes string   // folder of the agents' homes
	OwnNix     string   // path of claudebox's own nix
	Asks       bool     // a launch would ask on the terminal
}

// examination is a machine, with what several checks share.
type examination struct {
	Machine
	client  *nixdaemon.Client // nil: unreachable
	refused error             // why client is nil
}

// look is one check of the machine.
type look struct {
	name  string
	take  func(examination) Finding
	needs bool     // what it looks at is there
	after []string // checks that must not have failed: the same fault would be reported twice
}

// looks lists all checks, in the order in which they are shown.
func (e examination) looks() []look {
	return []look{
		{"kernel", kernel, true, nil},
		{"user namespaces", userNamespaces, true, nil},
		{"bwrap", bwrap, e.Bwrap != "", nil},
		{"store", storePaths, len(e.Paths) > 0, nil},
		{"network helper", networkHelper, e.Network != "", nil},
		{"tun device", tun, e.Network != "", nil},
		{
			"sandbox", sandbox, e.Bwrap != "" && e.Env != "",
			[]string{"kernel", "user namespaces", "bwrap", "store", "network helper"},
		},
		{"abstract sockets", abstractSockets, e.Tier == "full", nil}, // else the network namespace closes them
		{"terminal input", terminalInjection, true, nil},
		{"nix daemon", daemon, e.Socket != "", nil},
		{
			"nix inside", nixInside, e.Nix == "own" && e.Bwrap != "" && e.AgentHomes != "" && e.refused == nil,
			[]string{"sandbox"},
		},
		{"state folder", homes, e.AgentHomes != "", nil},
		{"confirmation", terminal, true, nil},
	}
}

// daemonWait bounds what the Nix daemon may take for its answers.
const daemonWait = 5 * time.Second

// Examine looks at everything that a launch needs of the machine. It changes nothing.
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
	for _, l := range e.looks() {
		if !l.needs || slices.ContainsFunc(l.after, func(name string) bool { return failed[name] }) {
			continue
		}
		f := l.take(e)
		f.Name = l.name
		failed[l.name] = f.Level == Failed
		findings = append(findings, f)
	}
	return findings
}
