package dns

import (
	"bytes"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// ResolvConf is the file that names the machine's resolvers.
const ResolvConf = "/etc/resolv.conf"

// port is the port on which resolvers listen.
const port = 53

// Nameservers returns the resolvers named in a resolv.conf(5). If it names none, the resolver is the machine itself.
func Nameservers(conf []byte) []netip.AddrPort {
	if list := Named(conf); len(list) > 0 {
		return list
	}
	return []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)}
}

// Named returns the resolvers named in a resolv.conf(5), at most three, as other readers do.
func Named(conf []byte) (list []netip.AddrPort) {
	const most = 3
	for line := range bytes.Lines(conf) {
		words := bytes.Fields(line)
		if len(words) < 2 || string(words[0]) != "nameserver" || len(list) == most {
			continue
		}
		if addr, err := netip.ParseAddr(string(words[1])); err == nil {
			list = append(list, netip.AddrPortFrom(addr, port))
		}
	}
	return list
}

// Resolvers are the machine's resolvers. Their file is read again when it has changed.
type Resolvers struct {
	path string

	mu       sync.Mutex
	list     []netip.AddrPort
	modified time.Time
	size     int64
}

// NewResolvers reads the resolvers from a file, usually [ResolvConf].
func NewResolvers(path string) *Resolvers { return &Resolvers{path: path} }

// Now returns the current resolvers.
func (r *Resolvers) Now() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.path)
	if r.list != nil && (err != nil || info.ModTime().Equal(r.modified) && info.Size() == r.size) {
		return slices.Clone(r.list)
	}
	text, _ := os.ReadFile(r.path)
	r.list = Nameservers(text)
	if err == nil {
		r.modified, r.size = info.ModTime(), info.Size()
	}
	return slices.Clone(r.list)
}
