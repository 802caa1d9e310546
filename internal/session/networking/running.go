package networking

import (
	"slices"

	"claudebox/internal/linux/aside"
	"claudebox/internal/network/helper"
	"claudebox/internal/plan"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/logfile"
)

// Running is what serves the sandbox's network while it runs. The zero value is none.
type Running struct {
	Helper     *helper.Helper // nil: there was none
	closed     bool
	Summary    helper.Summary // when it has ended
	EndedEarly error          // why the network ended before the session did; nil: it did not
}

// Open listens on the published ports of the host and starts the helper, before the sandbox
// starts. s holds only the settings of a broker in the helper (those of the session's secrets); it
// sets the others. If the sandbox has no network of its own, it returns nil, nil.
func (n *Running) Open(l launch.Launch, wanted Part, s helper.Settings) (_ *helper.Helper, err error) {
	if !l.OwnNetwork() {
		return nil, nil
	}
	if s.Program, err = aside.Program(aside.NetworkProgram); err != nil {
		return nil, err
	}
	if wanted.Log != "" {
		if s.Log, err = logfile.Open("network log", wanted.Log); err != nil {
			return nil, err
		}
	}
	var out []uint16
	for _, port := range l.Plan.Network.Out {
		out = append(out, uint16(port))
	}
	if s.Ports, err = helper.Listen(wanted.published, out); err != nil {
		return nil, err
	}
	configure(&s.Config, l.Plan.Network)
	s.Ended = func(err error) { n.EndedEarly = err }
	n.Helper, err = helper.Start(s)
	return n.Helper, err
}

// configure sets in the helper's configuration what the plan says of the network.
func configure(c *helper.Config, wanted plan.Network) {
	c.Tier, c.Except, c.Via = wanted.Tier, wanted.Except, wanted.Via
	for _, pattern := range wanted.Allow {
		c.Allow = append(c.Allow, helper.Entry{Pattern: pattern, Private: slices.Contains(wanted.Private, pattern)})
	}
}

// Close ends the network. It may be called again.
func (n *Running) Close() {
	if n.Helper != nil && !n.closed {
		n.Summary, n.closed = n.Helper.Close(), true
	}
}

// Reap waits for the end of a helper that was closed, see [helper.Helper.Reap].
func (n *Running) Reap() {
	if n.Helper != nil {
		n.Helper.Reap()
	}
}
