package dns

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// The ranges of addresses that stand for names. No host has such an address.
var (
	range4 = netip.MustParsePrefix("198.18.0.0/15") // its size is in [Generations]
	range6 = netip.MustParsePrefix("fd00:cb:1::/96")
)

// mostNames bounds how many names a sandbox can make us remember.
const mostNames = 8192

// Names gives addresses to names. A name keeps its addresses as long as the
// Names exist. It may be used from many goroutines.
type Names struct {
	first  uint32 // the lowest number of the generation; no name has it
	mu     sync.Mutex
	number map[string]uint32
	name   []string // by number less first; name[0] is empty
}

// Generations is how many Names can exist that have no address in common. It is at least the number of
// helpers that a session may have.
const Generations = (1 << (32 - 15)) / (2 * mostNames)

// NewNames makes an empty Names for the helper that is started after as many others as generation says. Names whose
// generations are equal modulo [Generations] have the same addresses.
func NewNames(generation int) *Names {
	return &Names{
		first: uint32(generation%Generations) * 2 * mostNames, number: map[string]uint32{},
		name: []string{""},
	}
}

// Addresses returns the addresses of a name, and false when there are too many names.
func (n *Names) Addresses(name string) (v4, v6 netip.Addr, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, known := n.number[name]
	if !known {
		if len(n.name) > mostNames {
			return netip.Addr{}, netip.Addr{}, false
		}
		number = n.first + uint32(len(n.name))
		n.number[name], n.name = number, append(n.name, name)
	}
	a4, a6 := range4.Addr().As4(), range6.Addr().As16()
	binary.BigEndian.PutUint32(a4[:], binary.BigEndian.Uint32(a4[:])+number)
	binary.BigEndian.PutUint32(a6[12:], number)
	return netip.AddrFrom4(a4), netip.AddrFrom16(a6), true
}

// Name returns the name that an address stands for; empty if none.
func (n *Names) Name(a netip.Addr) string {
	var number uint32
	switch {
	case range4.Contains(a):
		a4, first := a.As4(), range4.Addr().As4()
		number = binary.BigEndian.Uint32(a4[:]) - binary.BigEndian.Uint32(first[:])
	case range6.Contains(a):
		a6 := a.As16()
		number = binary.BigEndian.Uint32(a6[12:])
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if number < n.first || number-n.first >= uint32(len(n.name)) {
		return ""
	}
	return n.name[number-n.first]
}

// StandsForName reports whether an address is in the ranges that stand for names,
// whether or not it has been given to one.
func StandsForName(a netip.Addr) bool { return range4.Contains(a) || range6.Contains(a) }
