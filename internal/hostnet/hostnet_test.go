package hostnet

import (
	"net/netip"
	"slices"
	"testing"
)

func TestThisMachinesLoopbackIsAmongItsNetworks(t *testing.T) {
	n, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"127.0.0.0/8", "127.0.0.1/32"} {
		if !slices.Contains(n.Prefixes, netip.MustParsePrefix(want)) {
			t.Errorf("%s is not in %v", want, n.Prefixes)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		if _, err := Read(); err != nil {
			b.Fatal(err)
		}
	}
}
