//go:build lab

package network_test

import (
	"fmt"
	"slices"
	"testing"

	"claudebox/checks/network/target"
	"claudebox/checks/network/world"
)

// A port that is published is the host's alone, on its loopback.
func TestAPublishedPortLeadsInsideFromTheHostOnly(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"inet", "allow", "none"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			u := newUser(t, w)
			flags := append(u.in(t, tier, ""), "--publish", fmt.Sprint(target.ListenPort))
			talk := converse(t, u.probing(t, []string{"listen"}, flags...))
			talk.wait(t, "listening")
			want := []string{"host tcp 127.0.0.1", "host tcp ::1"}
			got := reachable(w)
			for try := 0; try < 3 && len(got) < len(want); try++ {
				got = reachable(w) // an answer may be late on a busy machine
			}
			if !slices.Equal(got, want) {
				t.Errorf("reached %q; want %q", got, want)
			}
			talk.end(t)
		})
	}
}

func TestAServiceOfTheHostThatTheProfileNames(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"inet", "allow"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, world.New(t))
			script := `curl -sS http://127.0.0.1:8080/; curl -sS --noproxy '*' --max-time 5 http://192.168.77.10:8080/ 2>/dev/null || echo no other`
			wantEqual(t, succeed(t, u.session(t, script, u.in(t, tier, fmt.Sprintf("ports: {out: [%d]}", target.HostPort))...)),
				"host loopback\nno other\n")
		})
	}
}

// What the user's profile excepts is reached, and nothing beside it.
func TestAnExceptionOpensOneHostOfTheLAN(t *testing.T) {
	t.Parallel()
	u := newUser(t, world.New(t))
	script := `for at in 192.168.77.2:80 192.168.77.1:80 192.168.77.10:8080 10.1.2.3:80; do curl -sS --max-time 5 http://$at/ 2>/dev/null || echo no $at; done`
	profile := u.profile(t, "network: {tier: inet, except: [\"192.168.77.2:80\", \"192.168.77.10\"]}")
	wantEqual(t, succeed(t, u.session(t, script, profile...)), "LAN\nno 192.168.77.1:80\nno 192.168.77.10:8080\nno 10.1.2.3:80\n")
}
