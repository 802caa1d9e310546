//go:build lab

package network_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"claudebox/checks/network/target"
	"claudebox/checks/network/world"
	"claudebox/internal/network/forbidden"
	"claudebox/internal/network/netfilter"
)

// Variables of a claudebox that is built with the tag lab.
const (
	dropRule  = "CLAUDEBOX_LAB_DROP_RULE="
	dropRange = "CLAUDEBOX_LAB_DROP_RANGE="
)

// idle are rules that can go without anything being noticed.
var idle = map[string]string{
	"::ffff:0.0.0.0/96":       "no packet is addressed so: the kernel sends IPv4",
	"neighbour advertisement": "pasta asks for no neighbour",
}

// hostNetworks are what the world's host is connected to and no fixed range
// holds: claudebox has to look.
var hostNetworks = []string{"198.51.100.0/26", "198.51.100.128/26", target.HostOther + "/32", "2001:db8:77::/64"}

// Each rule is left out once. Something must then be seen to change, or the
// rule, or the test, is good for nothing.
func TestNoRuleCanGoUnnoticed(t *testing.T) {
	t.Parallel()
	w, program := world.New(t), install(t, breakable(), nil)
	whole := brief(t, w, program, "")
	for _, rule := range netfilter.Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			changes := changed(whole, brief(t, w, program, dropRule+rule.Name))
			if why := idle[rule.Name]; (len(changes) == 0) != (why != "") {
				t.Errorf("changed: %q", changes)
			}
		})
	}
	for _, text := range append(fixedRanges(), hostNetworks...) {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			changes := changed(whole, brief(t, w, program, dropRange+text))
			if why := idle[text]; (len(changes) == 0) != (why != "") {
				t.Error("nothing changed")
			}
			for _, cell := range changes {
				if name, _, _ := strings.Cut(cell, "\t"); !netip.MustParsePrefix(text).Contains(addressOf(name)) {
					t.Errorf("changed: %s", cell)
				}
			}
		})
	}
}

func fixedRanges() []string {
	var list []string
	for _, p := range forbidden.Prefixes() {
		list = append(list, p.String())
	}
	return list
}

// addressOf is a target's, as packets have it.
func addressOf(name string) netip.Addr {
	if name == target.Gateway {
		return netip.MustParseAddr("192.0.2.1")
	}
	for _, t := range slices.Concat(target.All, target.Samples()) {
		if t.Name == name {
			return t.Addr.Unmap()
		}
	}
	return netip.Addr{}
}

// brief is what the probe finds in tier inet, with a part of the filter left
// out: answers by target and way.
func brief(t *testing.T, w *world.World, program, without string) map[string]string {
	t.Helper()
	u := newUser(t, w)
	u.binary, u.layout = program, plain("nameserver "+target.Router+"\nnameserver "+target.PublicDNS6+"\n")
	if without != "" {
		u.env = append(u.env, without)
	}
	found := map[string]string{}
	for line := range strings.Lines(succeed(t, u.probe(t, "inet", "brief"))) {
		line = strings.TrimSuffix(line, "\n")
		last := strings.LastIndexByte(line, '\t')
		found[line[:last]] = line[last+1:]
	}
	return found
}

func changed(before, after map[string]string) []string {
	var list []string
	for _, cell := range slices.Sorted(maps.Keys(before)) {
		if before[cell] != after[cell] {
			list = append(list, cell+"\t"+before[cell]+" → "+after[cell])
		}
	}
	return list
}
