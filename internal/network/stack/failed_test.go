package stack

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"claudebox/internal/network/flow"
	"claudebox/internal/network/upstream"
)

// A host that was allowed and not reached is in the log, with the reason.
func TestWhyAHostWasNotReachedIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		to        string
		name, via string
		refused   int
		failed    string
	}{
		"a port that is closed":       {to: "203.0.113.10:81", failed: "203.0.113.10:81: connection refused"},
		"a name that does not exist":  {to: "192.0.2.1:443", name: "gone.test", failed: "looking its name up: no such host"},
		"a proxy that does not run":   {to: "192.0.2.1:443", name: "a.test", via: "127.0.0.1:81", refused: 1},
		"a proxy that answers no one": {to: "192.0.2.1:443", name: "a.test", via: "127.0.0.1:80", failed: "by the proxy: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutside(t)
			s := newStack(t, o, inet, nil)
			s.Via = upstream.Proxy{Address: tc.via}
			s.dialOut = func(ctx context.Context, network, to string, judge func(netip.AddrPort) error) (
				net.Conn, netip.AddrPort, error,
			) {
				switch {
				case strings.HasPrefix(to, "gone."):
					return nil, netip.AddrPort{}, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}}
				case to == "127.0.0.1:80":
					ours, theirs := net.Pipe()
					go func() { _, _ = theirs.Read(make([]byte, 100)); theirs.Close() }()
					return ours, netip.AddrPort{}, nil
				}
				return o.dial(ctx, network, to, judge)
			}
			f := flow.Flow{Proto: flow.TCP, To: netip.MustParseAddrPort(tc.to), Name: tc.name}
			if _, _, err := s.dial(t.Context(), f); err == nil || errors.Is(err, errRefused) {
				t.Errorf("dialled: %v", err)
			}
			if got := strings.Join(o.failed, " "); !strings.Contains(got, tc.failed) || (tc.failed == "") != (got == "") {
				t.Errorf("failed: %q; want %q", got, tc.failed)
			}
			if len(o.refused) != tc.refused {
				t.Errorf("%d refused; want %d", len(o.refused), tc.refused)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			before := len(o.failed) + len(o.refused)
			_, _, _ = s.dial(ctx, f)
			if len(o.failed)+len(o.refused) != before {
				t.Error("one that nobody waits for is told")
			}
		})
	}
}
