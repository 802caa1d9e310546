package netfilter

import (
	"net/netip"
	"slices"
	"testing"
)

func TestIntervalsAreMergedAndInOrder(t *testing.T) {
	addr := netip.MustParseAddr
	for name, tc := range map[string]struct {
		prefixes []string
		want     []interval
	}{
		"none":                       {nil, nil},
		"one inside another":         {[]string{"10.1.0.0/16", "10.0.0.0/8"}, []interval{{addr("10.0.0.0"), addr("10.255.255.255")}}},
		"side by side":               {[]string{"10.0.1.0/24", "10.0.0.0/24"}, []interval{{addr("10.0.0.0"), addr("10.0.1.255")}}},
		"apart":                      {[]string{"10.0.2.0/24", "10.0.0.0/24"}, []interval{{addr("10.0.0.0"), addr("10.0.0.255")}, {addr("10.0.2.0"), addr("10.0.2.255")}}},
		"the last address of all":    {[]string{"255.255.255.255/32", "240.0.0.0/4"}, []interval{{addr("240.0.0.0"), addr("255.255.255.255")}}},
		"another family is left out": {[]string{"fd00::/8", "192.0.2.1/32"}, []interval{{addr("192.0.2.1"), addr("192.0.2.1")}}},
	} {
		t.Run(name, func(t *testing.T) {
			var prefixes []netip.Prefix
			for _, p := range tc.prefixes {
				prefixes = append(prefixes, netip.MustParsePrefix(p))
			}
			if got := intervals(prefixes, true); !slices.Equal(got, tc.want) {
				t.Errorf("got %v; want %v", got, tc.want)
			}
		})
	}
}
