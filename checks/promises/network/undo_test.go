//go:build lab

package network_test

import (
	"slices"
	"strings"
	"testing"

	"claudebox/checks/promises/network/world"
)

// confined are the tiers in which nothing of the host's network may be reached.
var confined = slices.DeleteFunc(slices.Clone(tiers), func(tier string) bool { return tier == "full" })

// Whatever is tried fails, and what is out of bounds stays so after it.
//
// Promise: no more network than the tier.
func TestNothingUndoesOrGoesRoundTheRules(t *testing.T) {
	t.Parallel()
	for _, tier := range confined {
		for _, c := range usual(tier) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				wantFutile(t, succeed(t, c.user(t, w).probe(t, tier, "undo")))
				c.wantNothingOut(t, w, tier)
			})
		}
	}
}

func wantFutile(t *testing.T, findings string) {
	t.Helper()
	for _, f := range lines(findings) {
		kind, attempt, got, leaks := f[0], f[1], f[2], f[3]
		if !strings.HasPrefix(got, "(") {
			t.Errorf("%s, %s: %s", kind, attempt, got)
		}
		if leaks != "" {
			t.Errorf("after %s, %s: reached %s", kind, attempt, leaks)
		}
	}
}

// nowhere are attempts that cannot succeed on this machine either.
var nowhere = map[string]string{
	"TUNSETIFF, on a device of my own":                 "only the machine's root makes devices",
	"setns to the parent of the user namespace":        "the parent is the machine's",
	"setns by a pidfd of process 1":                    "process 1 is the machine's",
	"take a socket or tunnel of another process":       "the host has no other process",
	"find the helper":                                  "the host has no other process",
	"hold a socket that was inherited":                 "none is handed on here either",
	"SCTP":                                             "most kernels have none",
	"UDP by a routing header of type 0":                "Linux knows it no more",
	"UDP by a routing header of type 2":                "not every kernel knows mobile IPv6",
	"UDP by a routing header of type 2, the other way": "not every kernel knows mobile IPv6",
	"shared memory communications":                     "most kernels have none",
	"systemd-resolved's socket":                        "not on this machine",
	"nscd's socket":                                    "not on this machine",
	"D-Bus":                                            "not on this machine",
}

// The same attempts, by who has the rights over a host and its network, have
// another end: what fails inside is not the attempt.
func TestTheAttemptsAreGoodOnes(t *testing.T) {
	t.Parallel()
	inside := map[string]string{}
	for _, f := range lines(succeed(t, newUser(t, world.New(t)).probe(t, "none", "undo"))) {
		inside[f[1]] = f[2]
	}
	for _, kind := range []string{"rights", "namespaces", "sockets", "roundabout"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cmd := world.New(t).Privileged(probe(), "undo", kind)
			for _, f := range lines(succeed(t, cmd)) {
				if attempt := f[1]; f[2] == inside[attempt] && nowhere[attempt] == "" {
					t.Errorf("%s: %s on the host and inside", attempt, f[2])
				}
			}
		})
	}
}
