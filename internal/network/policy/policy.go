package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"claudebox/internal/network/flow"
	"claudebox/internal/network/hostpattern"
)

// The tiers of a network.
const (
	TierInet  = "inet"  // the internet
	TierAllow = "allow" // the hosts of a list
	TierNone  = "none"  // nothing; ports may be carried
)

// Rules are the rules of a launch. They do not change while it runs.
type Rules struct {
	Tier  string
	Allow []Entry // of tier allow
	// Except are addresses that may be reached although they are in this machine's own networks.
	Except []Exception
	// Answers reports which connections a [flow.Answerer] answers; nil: none.
	Answers func(name string, port uint16) bool
}

// Entry is one line of a list of hosts.
type Entry struct {
	hostpattern.Pattern
	Private bool // the host's address may be one of a private network
}

// ParseEntry reads a pattern of a list of hosts.
func ParseEntry(pattern string, private bool) (Entry, error) {
	p, err := hostpattern.Parse(pattern)
	if err != nil {
		return Entry{}, fmt.Errorf("host pattern %q: %w", pattern, err)
	}
	return Entry{Pattern: p, Private: private}, nil
}

// Host is what the machine is connected to at one moment.
type Host struct {
	Addresses []netip.Addr   // its own
	Networks  []netip.Prefix // its own: connected ones, gateways, VPNs
	NAT64     []netip.Prefix // by which its network reaches IPv4, see RFC 6052
	Unsure    bool           // whether there may be more of them, see [Host.MayTranslate]
}

// Is reports whether an address is the machine's own.
func (h Host) Is(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsUnspecified() || slices.Contains(h.Addresses, a)
}

// IsLoopback reports whether a host's name, or its address, is that of the machine which asks. In a network of its own
// that is the sandbox. Names are not looked up.
func IsLoopback(name string) bool {
	a, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && a.Unmap().IsLoopback()
}

// StageName is the argv[0] of claudebox-helper for returning the machine's [Host].
const StageName = "claudebox-addresses"

// Judge decides about a flow. A flow with a name and no address is
// judged by the name alone; it is judged again with the address that the name
// leads to.
func Judge(r Rules, h Host, f flow.Flow) flow.Verdict {
	if r.Tier == TierNone {
		return refuse("tier none has no network")
	}
	if f.Proto != flow.ICMP && f.To.Port() == 0 {
		return refuse("no port")
	}
	if f.Name != "" && f.Proto != flow.TCP {
		return refuse("a host that has an address of its own here speaks TCP only")
	}
	private := false
	if r.Tier == TierAllow {
		entry, why := r.listed(f)
		if why != "" {
			return refuse(why)
		}
		private = entry.Private
	}
	if f.Name != "" && !f.To.Addr().IsValid() {
		if r.answers(f) {
			return flow.Verdict{Action: flow.Answer}
		}
		return flow.Verdict{Action: flow.Dial}
	}
	if why := r.refuses(h, f.To, private); why != "" {
		return refuse(why)
	}
	return flow.Verdict{Action: flow.Dial}
}

func refuse(why string) flow.Verdict { return flow.Verdict{Action: flow.Refuse, Why: why} }

func (r Rules) answers(f flow.Flow) bool {
	return r.Answers != nil && r.Answers(f.Name, f.To.Port())
}

// NotListed is the reason for refusing a name that the list could allow.
const NotListed = "not on the list of hosts"

// listed returns the entry of tier allow that admits a flow, or why none does.
func (r Rules) listed(f flow.Flow) (Entry, string) {
	if f.Name == "" {
		return Entry{}, "tier allow reaches names only"
	}
	entry, found := r.find(f.Name, f.To.Port())
	if !found {
		return Entry{}, NotListed
	}
	return entry, ""
}

// find returns an entry that admits a host at a port, preferably one that allows private addresses.
func (r Rules) find(name string, port uint16) (found Entry, ok bool) {
	for _, e := range r.Allow {
		if e.Matches(name, int(port)) && (!ok || e.Private) {
			found, ok = e, true
		}
	}
	return found, ok
}

// Knows reports whether some port of a host may be requested by name, so that
// the name gets an address of its own.
func (r Rules) Knows(name string) bool {
	if r.Tier == TierAllow {
		return slices.ContainsFunc(r.Allow, func(e Entry) bool { return e.Covers(name) })
	}
	return r.Answers != nil && r.Answers(name, 0)
}

// refuses returns why an address may not be dialled; empty if it may.
func (r Rules) refuses(h Host, to netip.AddrPort, private bool) string {
	if to.Addr().Zone() != "" {
		return "an address of a link"
	}
	a, through := h.behindNAT64(to.Addr().Unmap())
	if !a.IsValid() {
		return "not an address"
	}
	if why := never(h, a); why != "" {
		return why + through
	}
	excepted := slices.ContainsFunc(r.Except, func(e Exception) bool { return e.Covers(a, to.Port()) })
	if private || excepted {
		return ""
	}
	if i := slices.IndexFunc(special(), func(p netip.Prefix) bool { return p.Contains(a) }); i >= 0 {
		return Ranges[i].What + through
	}
	if i := slices.IndexFunc(h.Networks, func(p netip.Prefix) bool { return p.Contains(a) }); i >= 0 {
		return fmt.Sprintf("this machine's own network %s%s", h.Networks[i], through)
	}
	return ""
}

// ThisMachine is the reason for refusing an address of the machine that claudebox runs on. No rule allows one.
const ThisMachine = "this machine itself"

// never returns why no rule can allow an address: it is this machine, or a service that tells a cloud's
// machines about themselves. Empty if a rule can.
func never(h Host, a netip.Addr) string {
	switch {
	case h.Is(a):
		return ThisMachine
	case a.IsLinkLocalUnicast():
		return "link-local, with the metadata service of clouds"
	case a.IsMulticast(), a == broadcast:
		return "not one receiver"
	case slices.Contains(metadata, a):
		return "the metadata service of a cloud"
	}
	return ""
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// metadata are the services that tell a cloud's machine who it is, beside
// those of the link.
var metadata = []netip.Addr{
	netip.MustParseAddr("168.63.129.16"),      // Azure
	netip.MustParseAddr("100.100.100.200"),    // Alibaba
	netip.MustParseAddr("192.0.0.192"),        // Oracle
	netip.MustParseAddr("fd00:ec2::254"),      // AWS
	netip.MustParseAddr("fd00:ec2::23"),       // AWS, of a pod
	netip.MustParseAddr("fd20:ce::254"),       // Google
	netip.MustParseAddr("fd00:42::42"),        // Scaleway
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"), // Oracle
	netip.MustParseAddr("fd00:a9fe:a9fe::1"),  // Akamai
	netip.MustParseAddr("fd00:100::100:200"),  // Alibaba
}

// Refuses returns why tier inet does not reach an address; empty if it does.
func Refuses(h Host, a netip.Addr) string {
	return Rules{Tier: TierInet}.refuses(h, netip.AddrPortFrom(a, 0), false)
}
