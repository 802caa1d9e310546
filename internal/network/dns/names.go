package dns

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"sync"
)

// The ranges of addresses that stand for names. No host has such an address.
var (
	range4 = netip.MustParsePrefix("198.18.0.0/15")
	range6 = netip.MustParsePrefix("fd00:cb:1::/96")
)

// size4 is the number of addresses in range4.
const size4 = 1 << (32 - 15)

// mostNames bounds how many names a sandbox can make us remember.
const mostNames = 8192

// Names gives addresses to names. A name keeps its addresses as long as the Names exist, and nearly always has the same
// in another Names: a program that remembers an address meets no other name there after the helper was started again.
// It may be used from many goroutines.
type Names struct {
	mu     sync.Mutex
	number map[string]uint32 // counted from the first address of each range
	name   map[uint32]string
}

// NewNames makes an empty Names.
func NewNames() *Names { return &Names{number: map[string]uint32{}, name: map[uint32]string{}} }

// Addresses returns the addresses of a name, and false when there are too many names.
func (n *Names) Addresses(name string) (v4, v6 netip.Addr, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, known := n.number[name]
	if !known {
		if len(n.number) >= mostNames {
			return netip.Addr{}, netip.Addr{}, false
		}
		hash := fnv.New32a()
		hash.Write([]byte(name))
		for number = hash.Sum32() % size4; n.name[number] != ""; {
			number = (number + 1) % size4
		}
		n.number[name], n.name[number] = number, name
	}
	a4, a6 := range4.Addr().As4(), range6.Addr().As16()
	binary.BigEndian.PutUint32(a4[:], binary.BigEndian.Uint32(a4[:])+number)
	binary.BigEndian.PutUint32(a6[12:], number)
	return netip.AddrFrom4(a4), netip.AddrFrom16(a6), true
}

// Name returns the name that an address stands for; empty if none.
func (n *Names) Name(a netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case range4.Contains(a):
		a4, first := a.As4(), range4.Addr().As4()
		return n.name[binary.BigEndian.Uint32(a4[:])-binary.BigEndian.Uint32(first[:])]
	case range6.Contains(a):
		a6 := a.As16()
		return n.name[binary.BigEndian.Uint32(a6[12:])]
	}
	return ""
}

// StandsForName reports whether an address is in the ranges that stand for names,
// whether or not it has been given to one.
func StandsForName(a netip.Addr) bool { return range4.Contains(a) || range6.Contains(a) }
