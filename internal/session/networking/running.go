package networking

import (
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"

	"claudebox/internal/diag"
	"claudebox/internal/linux/aside"
	"claudebox/internal/network/helper"
	"claudebox/internal/network/policy"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/launch"
	"claudebox/internal/session/live"
	"claudebox/internal/session/logfile"
)

// Running is what serves the sandbox's network while it runs.
type Running struct {
	Events  *live.Events
	Helper  *helper.Helper // nil: there is none
	Summary helper.Summary // when it has ended

	tier, log  string
	endedEarly error // why the network ended before the session did; nil: it did not

	mu     sync.Mutex // commands ask from outside and inside
	closed bool
	opened []string // hosts that the user has let it reach since it began
}

// Open listens on the published ports of the host and starts the helper, before the sandbox
// starts. s holds only the settings of a broker in the helper (those of the session's secrets); it
// sets the others. If the sandbox has no network of its own, it returns nil, nil.
func (n *Running) Open(l launch.Launch, wanted Part, s helper.Settings) (_ *helper.Helper, err error) {
	if !l.OwnNetwork() {
		return nil, nil
	}
	n.tier, n.log = l.Tier, wanted.Log
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
	s.Ended = func(err error) { n.endedEarly = err }
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

// OpenMore lets the sandbox reach more, as the user wishes.
func (n *Running) OpenMore(o helper.Opening) error {
	if n.Helper == nil {
		return errors.New("its network cannot be changed")
	}
	if err := n.Helper.Open(o); err != nil {
		return err
	}
	hosts := slices.Concat(o.Allow, o.Except)
	for _, host := range hosts {
		n.Events.Add(live.Event{Kind: live.Allowed, What: host})
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opened = append(n.opened, hosts...)
	return nil
}

// Opened are the hosts that the user has let it reach since it began.
func (n *Running) Opened() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.opened)
}

// report is what was reached and refused by now.
func (n *Running) report() (report helper.Report) {
	n.mu.Lock()
	closed := n.closed
	n.mu.Unlock()
	switch {
	case closed:
		return n.Summary.Report
	case n.Helper != nil:
		report, _ = n.Helper.Report()
	}
	return report
}

// Note adds to the events what was reached and refused since.
func (n *Running) Note() {
	report := n.report()
	for _, h := range report.Hosts {
		what := h.Name
		if h.Port != 0 {
			what = net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port)))
		}
		n.Events.Add(live.Event{Kind: live.Reached, What: what, Count: 1})
	}
	for _, one := range report.Refused {
		n.Events.Add(live.Event{
			Kind: live.Refused, What: one.What, Why: one.Why, Count: one.Count, Host: n.allowable(one),
		})
	}
}

// allowable is what `claudebox allow-host` would take for something that was refused; empty: nothing.
func (n *Running) allowable(one helper.Refused) string {
	switch n.tier {
	case profile.TierAllow:
		return Listable(one)
	case profile.TierInet:
		if _, err := policy.ParseException(one.What); err == nil && one.Why != policy.ThisMachine {
			return one.What
		}
	}
	return ""
}

// Unlisted are the hosts that were refused by now because the profile does not list them.
func (n *Running) Unlisted() []string { return Unlisted(n.report()) }

// Refusals is how often something was refused by now.
func (n *Running) Refusals() (count int) {
	report := n.report()
	count = report.More
	for _, one := range report.Refused {
		count += one.Count
	}
	return count
}

// End ends the network, and prints what went wrong with it.
func (n *Running) End(stderr io.Writer) {
	n.Close()
	n.Note()
	if n.endedEarly != nil {
		const remedy = "start again: the agent went on without a network"
		diag.Print(stderr, &diag.Error{Op: "keep the sandbox's network", Err: n.endedEarly, Remedy: remedy})
	}
	switch lost := n.Summary.LogLost; lost {
	case "":
	case helper.LogFull:
		diag.Note(stderr, "the network log "+diag.Name(n.log)+" is not complete: "+lost)
	default:
		const remedy = "write it to a disk with room; this session's log is not complete"
		diag.Print(stderr, &diag.Error{Op: "write the network log " + n.log, Err: errors.New(lost), Remedy: remedy})
	}
}

// Close ends the network. It may be called again.
func (n *Running) Close() {
	if n.Helper == nil || n.closed {
		return
	}
	summary := n.Helper.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Summary, n.closed = summary, true
}

// Reap waits for the end of a helper that was closed, see [helper.Helper.Reap].
func (n *Running) Reap() {
	if n.Helper != nil {
		n.Helper.Reap()
	}
}
