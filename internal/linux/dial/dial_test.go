package dial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// A host with addresses that nothing answers at, beside one that lives: IPv6 that leads nowhere, a server that is off.
func TestADeadAddressDelaysNoLivingOne(t *testing.T) {
	dead, refused, alive := netip.MustParseAddrPort("[2001:db8::1]:443"), netip.MustParseAddrPort("192.0.2.1:443"), netip.MustParseAddrPort("192.0.2.2:443")
	const never = time.Hour
	no := errors.New("refused")
	for name, tc := range map[string]struct {
		all   []netip.AddrPort
		delay time.Duration
		want  netip.AddrPort
		err   error
	}{
		"the living last":        {[]netip.AddrPort{dead, dead, dead, alive}, time.Microsecond, alive, nil},
		"the living first":       {[]netip.AddrPort{alive, dead}, never, alive, nil},
		"one that refuses":       {[]netip.AddrPort{refused, refused, alive}, never, alive, nil},
		"dead ones and refusing": {[]netip.AddrPort{dead, refused, dead, alive}, time.Microsecond, alive, nil},
		"all refuse":             {[]netip.AddrPort{refused, refused}, never, netip.AddrPort{}, no},
		"none":                   {nil, never, netip.AddrPort{}, errNowhere},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // it only bounds a hang
		defer cancel()
		conn, addr, err := race(ctx, tc.all, tc.delay, func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			switch addr {
			case refused:
				return nil, no
			case dead:
				<-ctx.Done()
				return nil, ctx.Err()
			}
			here, _ := net.Pipe()
			return here, ctx.Err()
		})
		if addr != tc.want || !errors.Is(err, tc.err) || (conn != nil) != tc.want.IsValid() {
			t.Errorf("%s: %v, %v, %v", name, conn, addr, err)
		}
	}
}

func TestAConnectionThatComesTooLateIsClosed(t *testing.T) {
	slow, fast := netip.MustParseAddrPort("192.0.2.1:443"), netip.MustParseAddrPort("192.0.2.2:443")
	begun := make(chan struct{})
	here, there := net.Pipe()
	_, addr, err := race(t.Context(), []netip.AddrPort{slow, fast}, time.Microsecond, func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
		if addr == slow {
			close(begun)
			<-ctx.Done()
			return here, nil
		}
		<-begun
		conn, _ := net.Pipe()
		return conn, nil
	})
	if addr != fast || err != nil {
		t.Fatalf("%v, %v", addr, err)
	}
	if _, err := there.Read(make([]byte, 1)); err != io.EOF { // it hangs if here is not closed
		t.Error(err)
	}
}

func TestFamiliesTakeTurns(t *testing.T) {
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no names here") }}
	for to, want := range map[string][]string{
		"192.0.2.1:443": {"192.0.2.1:443"}, "[2001:db8::1]:443": {"[2001:db8::1]:443"}, "a.invalid.:443": nil, "192.0.2.1:x": nil, "192.0.2.1": nil,
	} {
		got, err := addresses(t.Context(), r, to)
		var text []string
		for _, addr := range got {
			text = append(text, addr.String())
		}
		if !slices.Equal(text, want) || (err == nil) != (want != nil) {
			t.Errorf("%s: %q, %v", to, text, err)
		}
	}
	var list []netip.Addr
	for _, text := range []string{"2001:db8::1", "2001:db8::2", "192.0.2.1", "2001:db8::3", "::ffff:192.0.2.2"} {
		list = append(list, netip.MustParseAddr(text))
	}
	want := "[[2001:db8::1]:80 192.0.2.1:80 [2001:db8::2]:80 192.0.2.2:80 [2001:db8::3]:80]"
	if got := inTurns(list, 80); fmt.Sprint(got) != want {
		t.Errorf("%v; want %s", got, want)
	}
}
