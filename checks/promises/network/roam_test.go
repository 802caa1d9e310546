//go:build lab

package network_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"claudebox/checks/kit/must"
	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// What the host is connected to while a session runs is closed like what it was
// connected to before: a laptop that roams, a VPN that comes up.
func TestWhatTheHostIsConnectedToLaterIsClosed(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]struct {
		happen func(*world.World) error
		closed []string
		also   []string // that only comes to be
	}{
		"another LAN": {
			(*world.World).Roam,
			[]string{target.At(target.LaterLAN, target.Port), target.At(target.LaterLAN6, target.Port)},
			[]string{target.At(target.LaterHost, target.HostPort), target.At(target.LaterHost6, target.HostPort)},
		},
		"a VPN": {(*world.World).RaiseVPN, []string{target.At(target.LaterVPN, target.Port)}, nil},
	} {
		for _, c := range usual("inet") {
			t.Run(c.name+", "+name, func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				talk := converse(t, c.user(t, w).probe(t, "inet", "converse"))
				for _, place := range later.closed {
					talk.wantOpen(t, place)
				}
				talk.ask(t, "hold "+later.closed[0])
				must.Do(t, later.happen(w))
				for _, place := range append(later.closed, later.also...) {
					talk.awaitClosed(t, place)
				}
				if got := talk.ask(t, "use"); slices.ContainsFunc(got, reached) {
					t.Errorf("a connection of before still works: %q", got)
				}
				talk.wantOpen(t, target.At(target.Internet, target.Port))
				for _, place := range []string{target.At(target.LANPeer, target.Port), target.At(target.HostLAN, target.HostPort), target.At(target.Metadata, target.Port)} {
					if got := talk.ask(t, "reach "+place); slices.ContainsFunc(got, reached) {
						t.Errorf("%s has come open: %q", place, got)
					}
				}
				talk.end(t)
			})
		}
	}
}

// wantOpen tries again and again: IPv6 is closed until a resolver has said which
// NAT64 there is.
func (c *conversation) wantOpen(t *testing.T, place string) {
	t.Helper()
	var got []string
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if got = c.ask(t, "reach "+place); slices.ContainsFunc(got, reached) {
			return
		}
	}
	t.Errorf("%s is closed: %q", place, got)
}

// awaitClosed: the news takes its way through the kernel and claudebox. It ends
// with the conversation, should it never come.
func (c *conversation) awaitClosed(t *testing.T, place string) {
	t.Helper()
	for slices.ContainsFunc(c.ask(t, "reach "+place), reached) {
	}
}

// reached reports whether a line of the probe names who answered.
func reached(line string) bool {
	answer := line[strings.LastIndexByte(line, '\t')+1:]
	return !strings.HasPrefix(answer, "(")
}

// ask says a line and returns the answer to it.
func (c *conversation) ask(t *testing.T, line string) []string {
	t.Helper()
	c.say(t, line)
	return c.wait(t, ".")
}
