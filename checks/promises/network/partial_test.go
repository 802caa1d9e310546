//go:build lab

package network_test

import (
	"strings"
	"testing"

	"claudebox/checks/kit/must"
	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// A host may have one kind of internet only. What it has works, with its names,
// and nothing more is open than elsewhere.
func TestAHostWithOneFamilyOnly(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]struct {
		missing    string
		files      world.Layout
		open, gone string // targets
		addresses  string // of good.test, as it resolves
	}{
		"IPv4":                            {world.IPv6, plain("nameserver " + target.PublicDNS + "\n"), "internet", "internet 6", target.Internet},
		"IPv6":                            {world.IPv4, plain("nameserver " + target.PublicDNS6 + "\n"), "internet 6", "internet", target.Internet6},
		"IPv6, with a stub on 127.0.0.53": {world.IPv4, world.Systemd, "internet 6", "internet", target.Internet6},
	} {
		for _, c := range usual("inet") {
			t.Run(c.name+", "+name, func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				must.Do(t, w.Unplug(host.missing))
				u := c.user(t, w)
				u.layout = host.files
				talk := converse(t, u.probe(t, "inet", "converse"))
				got := cellsOf(strings.Join(talk.ask(t, "matrix"), "\n"))
				_, leak := differences("inet", got)
				if row := got.row(host.open); leak || !strings.HasPrefix(row, "+") || strings.Contains(got.row(host.gone), "+") {
					t.Errorf("leak: %v, %s: %s, %s: %s", leak, host.open, row, host.gone, got.row(host.gone))
				}
				talk.end(t)
				if names := succeed(t, u.probe(t, "inet", "names", "good.test")); !strings.Contains(names, host.addresses) {
					t.Error(names)
				}
			})
		}
	}
}

// A host without any: there is nothing to give, and claudebox says so or starts
// and reaches nothing.
func TestAHostThatIsOffline(t *testing.T) {
	t.Parallel()
	for _, c := range usual("inet") {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			for _, route := range []string{world.IPv4, world.IPv6} {
				must.Do(t, w.Unplug(route))
			}
			got := run(t, c.user(t, w).probe(t, "inet", "matrix"))
			if got.status == 125 && strings.Contains(got.stderr, "it is offline") && strings.Contains(got.stderr, "remedy: ") {
				return
			}
			if got.status != 0 || got.stderr != "" {
				t.Fatalf("status %d, %s", got.status, got.stderr)
			}
			all := cellsOf(got.stdout)
			if _, leak := differences("inet", all); leak || all.row("internet")[0] != '.' {
				t.Error(got.stdout)
			}
		})
	}
}
