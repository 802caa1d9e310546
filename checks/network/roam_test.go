//go:build lab

package network_test

import (
	"slices"
	"strings"
	"testing"

	"claudebox/checks/network/target"
	"claudebox/checks/network/world"
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			talk := converse(t, newUser(t, w).probing(t, []string{"converse"}, "--network", "inet"))
			for _, place := range later.closed {
				if answers := talk.ask(t, "reach "+place); len(answers) == 0 || !slices.ContainsFunc(answers, reached) {
					t.Errorf("%s, before: %q", place, answers)
				}
			}
			talk.ask(t, "hold "+later.closed[0])
			if err := later.happen(w); err != nil {
				t.Fatal(err)
			}
			for _, place := range append(later.closed, later.also...) {
				// The news takes its way through the kernel and claudebox.
				for slices.ContainsFunc(talk.ask(t, "reach "+place), reached) {
				}
			}
			if got := talk.ask(t, "use"); slices.ContainsFunc(got, reached) {
				t.Errorf("a connection of before still works: %q", got)
			}
			if got := talk.ask(t, "reach "+target.At(target.Internet, target.Port)); !slices.ContainsFunc(got, reached) {
				t.Errorf("the internet is gone: %q", got)
			}
			for _, place := range []string{target.At(target.LANPeer, target.Port), target.At(target.HostLAN, target.HostPort), target.At(target.Metadata, target.Port)} {
				if got := talk.ask(t, "reach "+place); slices.ContainsFunc(got, reached) {
					t.Errorf("%s has come open: %q", place, got)
				}
			}
			talk.end(t)
		})
	}
}

// reached tells whether a line of the probe names who answered.
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
