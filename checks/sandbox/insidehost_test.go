//go:build lab

package sandbox_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// long reports whether tests take the time that they need to see all.
func long() bool { return os.Getenv("CLAUDEBOX_LONG") == "1" }

// inTier are the flags of a session in that tier.
func (w *world) inTier(t *testing.T, tier string) []string {
	t.Helper()
	if tier == "allow" {
		return []string{"--profile", w.profile(t, "network: {tier: allow, allow: [api.anthropic.com]}")}
	}
	return []string{"--network", tier}
}

// The same for each daemon, whether or not it trusts the user, in each tier. In
// one tier with each daemon, and in all with CLAUDEBOX_LONG=1, the host goes on
// meanwhile.
func TestNixInsideOverEachDaemon(t *testing.T) {
	tiers := []string{"full", "inet", "allow", "none"}
	for i, release := range []string{"bookworm", "trixie", "sid"} {
		t.Run(release, func(t *testing.T) {
			h := newOwnHost(t)
			for j, trusted := range []bool{false, true} {
				h.daemon(t, release, trusted)
				for k, tier := range tiers {
					t.Run(fmt.Sprintf("trusted %v, tier %s", trusted, tier), func(t *testing.T) {
						h.works(t, tier)
						if long() || k == (2*i+j)%len(tiers) {
							h.goesOn(t, tier)
						}
					})
				}
			}
		})
	}
}

// works needs nothing but what the host has.
func (h *ownHost) works(t *testing.T, tier string) {
	got := run(t, h.there(h.session(build+`
		nix shell nixpkgs#hello -c hello 2>/dev/null
		cat "$(build over-`+tier+` 'echo built >$out')"
		nix store info --json --store unix:///run/claudebox/nix-daemon 2>/dev/null | jq .trusted`, h.inTier(t, tier)...)))
	if got.stdout != "Hello, world!\nbuilt\nfalse\n" && got.stdout != "Hello, world!\nbuilt\n0\n" {
		t.Errorf("status %d, %q, %s", got.status, got.stdout, got.stderr)
	}
}

// goesOn: while a build runs inside, the host collects its garbage, adds a path,
// and has a second session in the same project.
func (h *ownHost) goesOn(t *testing.T, tier string) {
	flags := h.inTier(t, tier)
	name := strings.NewReplacer("/", "-", ",", "").Replace(t.Name())
	relies := h.add(t, "relies-on-"+name, "relied on\n")
	garbage := h.add(t, "garbage-"+name, "garbage\n")
	added := ""
	got := h.during(t, flags, relies, `p=$(cat added); nix path-info "$p"; cat "$p"; if [ -e `+garbage+` ]; then echo garbage; fi`, func() {
		h.remote(t, "nix-collect-garbage")
		if h.exists(garbage) || !h.exists(relies) {
			t.Errorf("the collector: garbage there %v, what a build uses there %v; want false, true", h.exists(garbage), h.exists(relies))
		}
		added = h.add(t, "added-"+name, "added\n")
		h.write(t, "project/added", added+"\n")
		second := run(t, h.there(h.session(build+`nix shell nixpkgs#hello -c hello 2>/dev/null; cat "$(build second 'echo second >$out')"`, flags...)))
		wantEqual(t, second.stdout, "Hello, world!\nsecond\n")
	})
	if want := "Hello, world!\nrelied on\n" + added + "\nadded\n"; got.stdout != want {
		t.Errorf("status %d, %q, %s; want %q", got.status, got.stdout, got.stderr, want)
	}
}

// destruction is what an agent may try with Nix: 85 operations, after which it
// prints their number.
const destruction = build + `
	exec 2>/dev/null; set +e
	done=0; op() { "$@" >/dev/null; done=$((done + 1)); }
	host="--store unix:///run/claudebox/nix-daemon"
	hello=$(nix build --no-link --print-out-paths nixpkgs#hello)
	for i in $(seq 5); do
		op build "built-$i-$1" "echo $i >\$out"; op build "also-$i" "echo $i >\$out"; op nix-store --delete $(ls -d /nix/store/*-built-$i-$1)
		op nix store delete "$hello"; op nix-store --delete "$hello"; op nix-store --repair-path "$hello"
		op nix-store $host --gc; op nix-store $host --delete "$hello"; op nix-store $host --add /etc/passwd
		op nix store sign $host -k /dev/null "$hello"; op nix-store $host --gc --print-roots
		op nix copy --to unix:///run/claudebox/nix-daemon --no-check-sigs "$(nix-store --add /etc/group)"
		op nix-store $host --optimise; op nix-store $host --verify --repair; op nix-store --verify --check-contents --repair
		op nix-store --gc; op nix store gc
	done
	echo "$done"`

// Whatever the agent does with Nix, as a user whom the daemon trusts, the host's
// store is as it was: after one session, or after six with CLAUDEBOX_LONG=1,
// which are 510 operations.
func TestTheHostsStoreIsAsItWas(t *testing.T) {
	h := newOwnHost(t)
	h.daemon(t, "sid", true)
	before := h.state(t)
	sessions := 1
	if long() {
		sessions = 6
	}
	for i := range sessions {
		got := run(t, h.there(h.session("set -- "+strconv.Itoa(i)+destruction)))
		if got.status != 0 || got.stdout != "85\n" {
			t.Errorf("session %d: status %d, %q operations, %s", i, got.status, got.stdout, got.stderr)
		}
	}
	// The daemon lets go of a session's roots when its worker ends.
	after := ""
	for range 100 {
		if after = h.state(t); after == before {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	wantEqual(t, after, before)
}

// Where Nix was installed for one user there is no daemon, and the store is that
// user's own to write: the same holds.
func TestNixInsideWithoutADaemon(t *testing.T) {
	h := newOwnHost(t)
	h.goesOn(t, "full")
	wantContains(t, run(t, h.there(h.claudebox("check"))).stdout, "has a store of its own over the host's")
	before := h.state(t)
	got := run(t, h.there(h.session(build+`
		cat "$(build again 'echo again >$out')"
		chmod -R u+w ${SHELL%/bin/bash} && echo '#!/bin/sh' >$SHELL; rm -rf /nix/store/*-hello-*; nix-collect-garbage >/dev/null 2>&1`)))
	wantEqual(t, got.stdout, "again\n")
	wantEqual(t, h.state(t), before)
	wantEqual(t, succeed(t, h.there(h.session(`"$SHELL" -c 'echo good'; nix shell nixpkgs#hello -c hello 2>/dev/null`))), "good\nHello, world!\n")
}
