package network

import "testing"

func TestTheResolverInsideIsOfAFamilyThatTheHostAsksIn(t *testing.T) {
	const v4, v6 = "nameserver 169.254.1.1\n", "nameserver 2001:db8:cb::53\n"
	for name, tc := range map[string]struct{ host, want string }{
		"systemd-resolved":          {"# made\nnameserver 127.0.0.53\noptions edns0\nsearch home\n", v4},
		"several, IPv4 behind IPv6": {"nameserver fe80::1%eth0\nnameserver 192.168.1.1\n", v4},
		"IPv6 only":                 {"nameserver\t2001:db8::53\n", v6},
		"IPv6 of the link":          {"nameserver fe80::1%eth0\n", v6},
		"none":                      {"search home\nnameserver\nnameserver of-no-use\n#nameserver 127.0.0.1\n", ""},
		"no file":                   {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(ResolvConf([]byte(tc.host))); got != tc.want {
				t.Errorf("got %q; want %q", got, tc.want)
			}
		})
	}
}
