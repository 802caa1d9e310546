//go:build lab

package network_test

import (
	"io"
	"strings"
	"testing"

	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
)

// The LAN has IPv6 addresses, too, behind a NAT64 prefix that only a resolver
// knows: it is closed whichever resolver that is, and while none says it.
func TestTheLANBehindANAT64IsClosed(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	for _, l := range w.ListenOutside(t, "7480", target.LANByNAT64, target.Internet6) {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				io.WriteString(c, "reached\n")
				c.Close()
			}
		}()
	}
	const dead, router = "nameserver 203.0.113.99\n", "nameserver " + target.Router + "\n"
	for name, tc := range map[string]struct{ conf, internet string }{
		"one resolver": {router, "reached"},
		"a dead first": {dead + router, "reached"},
		"a dead one":   {dead, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, w)
			u.layout = plain(tc.conf)
			for to, want := range map[string]string{target.LANByNAT64: "", target.Internet6: tc.internet} {
				got := run(t, u.session(t, "timeout 9 cat < /dev/tcp/"+to+"/7480 || true", u.in(t, "inet", "")...))
				if strings.TrimSpace(got.stdout) != want {
					t.Errorf("%s: %q; want %q", to, got.stdout, want)
				}
			}
		})
	}
}
