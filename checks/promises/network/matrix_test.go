//go:build lab

package network_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
	"claudebox/internal/network/policy"
	"claudebox/internal/sandbox/launch"
)

// columns are the ways to reach a target, in the order of the table.
var columns = []struct {
	protocol string
	tricks   []string
}{
	{"tcp", []string{"plain", "bind to device", "unicast interface", "IPv4-mapped", "IPv4-mapped, device"}},
	{"udp", []string{"plain", "bind to device", "unicast interface", "packet info", "IPv4-mapped", "IPv4-mapped, device"}},
	{"icmp", []string{"plain", "bind to device"}},
}

// tiers are the columns of the table.
var tiers = []string{"full", "inet", "allow", "none"}

// table says for each target, tier and way whether the target answers: + by its
// name, ! another one in its place, . nobody, _ where the way makes no sense.
const table = `
target               full              inet              allow             none
internet             +++++ ++++++ ++   +++++ ++++++ ++   ..... ...... ..   ..... ...... ..
internet 6           +++__ ++++__ ++   +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..
internet resolver    +++++ ++++++ ++   +++++ ++++++ ++   ..... ...... ..   ..... ...... ..
later LAN            +++++ ++++++ ++   +++++ ++++++ ++   ..... ...... ..   ..... ...... ..
later LAN 6          +++__ ++++__ ++   +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..
later VPN            +++++ ++++++ ++   +++++ ++++++ ++   ..... ...... ..   ..... ...... ..
LAN                  +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
LAN router           +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
second VLAN          +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
10/8                 +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
172.16/12            +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
CGNAT                +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
tailnet resolver     +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
metadata             +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
metadata, Azure      +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
metadata, Oracle     +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
benchmarks           +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
reserved             +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
public LAN           +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
public VPN           +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
LAN 6                +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
ULA                  +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
tailnet 6            +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
metadata 6           +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
metadata 6, Oracle   +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
link-local 6         +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
site-local 6         +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
NAT64 of LAN         +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
local NAT64          +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
6to4 of LAN          +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
host loopback        +.++. +...+. +.   ..... ...... +.   ..... ...... +.   ..... ...... ..
host loopback 6      +.+__ +...__ +.   ...__ ....__ +.   ...__ ....__ +.   ...__ ....__ ..
host stub            +.++. +...+. +.   ..... ...... +.   ..... ...... +.   ..... ...... ..
host LAN             +++++ ++++++ ++   ..... ...... ..   ..... ...... ..   ..... ...... ..
host VLAN            +.++. +...+. +.   ..... ...... ..   ..... ...... ..   ..... ...... ..
host tailnet         +.++. +...+. +.   ..... ...... ..   ..... ...... ..   ..... ...... ..
host public          +.++. +...+. +.   ..... ...... ..   ..... ...... ..   ..... ...... ..
host VPN             +.++. +...+. +.   ..... ...... ..   ..... ...... ..   ..... ...... ..
host public VPN      +.++. +...+. +.   ..... ...... ..   ..... ...... ..   ..... ...... ..
host LAN 6           +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
host ULA             +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
host link-local 6    +++__ ++++__ ++   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
0.0.0.0              !!!!! !!!!!! ++   ..... ...... ++   ..... ...... ++   ..... ...... ..
::                   !.!__ !...__ ..   ...__ ....__ ..   ...__ ....__ ..   ...__ ....__ ..
gateway              ..... ...... ++   ..... ...... ++   ..... ...... ++   _____ ______ __
gateway 6            ...__ ....__ ++   ...__ ....__ ++   ...__ ....__ ++   _____ ______ __
`

// Promise: no more network than the tier.
func TestWhatEachTierReaches(t *testing.T) {
	t.Parallel()
	for _, tier := range tiers {
		for _, c := range combinations(t, tier) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.wantCells(t, tier)
			})
		}
	}
}

// wantCells compares with the table, cell by cell.
func (c combination) wantCells(t *testing.T, tier string) {
	t.Helper()
	w := world.New(t)
	if tier != "full" {
		defer c.wantNothingOut(t, w, tier)
	}
	got := cellsOf(succeed(t, c.user(t, w).probe(t, tier, "matrix")))
	wantNoAbstract(t, tier, got)
	got.want(t, tier)
}

// cells are answers by target, protocol and trick.
type cells map[[3]string]string

func cellsOf(findings string) cells {
	all := cells{}
	for _, f := range lines(findings) {
		all[[3]string{f[0], f[1], f[2]}] = f[3]
	}
	return all
}

// row is a target's line of the table for one tier.
func (c cells) row(name string) string {
	var b strings.Builder
	for i, column := range columns {
		if i > 0 {
			b.WriteByte(' ')
		}
		for _, trick := range column.tricks {
			b.WriteByte(symbol(name, c[[3]string{name, column.protocol, trick}]))
		}
	}
	return b.String()
}

func symbol(name, answer string) byte {
	switch {
	case answer == "":
		return '_'
	case answer[0] == '(':
		return '.'
	case answer == name || answer == "reply":
		return '+'
	}
	return '!'
}

// want has a test fail for each row that is not as the table has it.
func (c cells) want(t *testing.T, tier string) {
	t.Helper()
	problems, _ := differences(tier, c)
	for _, problem := range problems {
		t.Error(problem)
	}
}

// differences names each row that is not as the table has it, and reports whether
// one of them has more open.
func differences(tier string, got cells) (found []string, leak bool) {
	for name, want := range wanted(tier) {
		row := got.row(name)
		if row == want {
			continue
		}
		found = append(found, fmt.Sprintf("%s in tier %s: got %q, want %q", name, tier, row, want))
		for i := range row {
			leak = leak || row[i] != want[i] && strings.ContainsRune("+!", rune(row[i]))
		}
	}
	slices.Sort(found)
	return found, leak
}

// wanted is one tier's column of the table, by target.
func wanted(tier string) map[string]string {
	head, rows, _ := strings.Cut(strings.TrimPrefix(table, "\n"), "\n")
	from := strings.Index(head, tier)
	rowOf := map[string]string{}
	for line := range strings.Lines(rows) {
		name := strings.TrimSpace(line[:strings.Index(head, tiers[0])])
		rowOf[name] = line[from : from+len(cells{}.row(name))]
	}
	return rowOf
}

func TestTheTableHasEveryTarget(t *testing.T) {
	t.Parallel()
	for _, tier := range tiers {
		rows := wanted(tier)
		for _, to := range target.All {
			if rows[to.Name] == "" {
				t.Errorf("%s is not in the table", to.Name)
			}
		}
		if len(rows) != len(target.All) {
			t.Errorf("the table has %d rows for %d targets", len(rows), len(target.All))
		}
	}
}

// wantNothingOut: what has no answer may still have been sent. Nothing that is
// out of bounds has come out, and where there is no internet, nothing at all.
func (c combination) wantNothingOut(t *testing.T, w *world.World, tier string) {
	t.Helper()
	if tier == "inet" {
		wantInBounds(t, w)
		return
	}
	for _, p := range arrived(t, w) {
		t.Errorf("sent to %s", p)
	}
}

// hostNetworks are what the world's host is connected to and no fixed range
// holds: claudebox has to look.
var hostNetworks = []string{"198.51.100.0/26", "198.51.100.128/26", target.HostOther + "/32", "2001:db8:77::/64"}

func wantInBounds(t *testing.T, w *world.World) {
	t.Helper()
	var here policy.Host
	for _, text := range hostNetworks {
		here.Networks = append(here.Networks, netip.MustParsePrefix(text))
	}
	for _, p := range arrived(t, w) {
		if policy.Refuses(here, p.To) != "" {
			t.Errorf("sent to %s", p)
		}
	}
}

func arrived(t *testing.T, w *world.World) []world.Packet {
	t.Helper()
	packets, err := w.Arrived()
	must.Do(t, err)
	return packets
}

// wantNoAbstract: X11, D-Bus and others listen on abstract sockets, which no
// mount hides.
func wantNoAbstract(t *testing.T, tier string, got cells) {
	t.Helper()
	if tier == "full" && !launch.ClosesAbstractSockets() {
		t.Log("this kernel cannot close abstract sockets; the audit says so")
		return
	}
	for _, protocol := range []string{"unix stream", "unix datagram"} {
		if answer := got[[3]string{"host abstract", protocol, "plain"}]; answer != "(EPERM)" && answer != "(ECONNREFUSED)" {
			t.Errorf("%s to the host's abstract socket from tier %s: %q", protocol, tier, answer)
		}
	}
}
