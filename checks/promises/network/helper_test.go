//go:build lab

package network_test

import (
	"maps"
	"strings"
	"syscall"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// F6: the end of what serves the network was silent. Another helper takes its
// place, connections of before end, new ones work, and the user is told.
func TestAHelperThatEndsIsReplacedAndTold(t *testing.T) {
	t.Parallel()
	for name, layout := range map[string]world.Layout{"tun": world.Systemd, "veth": withoutTun()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, world.New(t))
			u.layout = layout
			wantReplaced(t, u)
		})
	}
}

// withoutTun is a host that has no tun, as containers have none.
func withoutTun() world.Layout {
	layout := maps.Clone(world.Systemd)
	layout["/dev/net/tun"] = "no device"
	return layout
}

func wantReplaced(t *testing.T, u *user) {
	t.Helper()
	const place = "/opt/probe"
	words := append([]string{"shell", "--yes", "--mount-ro", probe() + ":" + place}, u.in(t, "inet", "")...)
	talk := converse(t, u.claudebox(t, append(words, "--", place, "converse")...))
	internet := target.At(target.Internet, target.Port)
	talk.wantOpen(t, internet)
	talk.ask(t, "hold "+internet)
	before := helperOf(t, talk.cmd.Process.Pid)
	must.Do(t, syscall.Kill(before, syscall.SIGKILL))
	for tries := 0; ; tries++ { // until the other one is there
		if got := talk.ask(t, "reach "+internet); len(got) > 0 && reached(got[0]) {
			break
		}
		if tries == 100 {
			t.Fatal("the internet does not come back")
		}
	}
	if after := helperOf(t, talk.cmd.Process.Pid); after == before {
		t.Error("it is the same helper")
	}
	talk.awaitClosed(t, target.At(target.LANPeer, target.Port))
	if got := talk.ask(t, "use"); len(got) > 0 && reached(got[0]) {
		t.Errorf("a connection of before still works: %q", got)
	}
	talk.end(t)
	if told := talk.stderr.String(); !strings.Contains(told, "the network helper ended by itself and was started again") {
		t.Errorf("the user is told: %s", told)
	}
}

// Where there is no tun, as in containers, a veth pair serves the same table.
func TestWithoutATunTheTableHolds(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"inet", "allow"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			u := newUser(t, w)
			u.layout = withoutTun()
			cellsOf(succeed(t, u.probe(t, tier, "matrix"))).want(t, tier)
			usual(tier)[0].wantNothingOut(t, w, tier)
		})
	}
}
