package why

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"claudebox/internal/network/hostpattern"
	"claudebox/internal/network/policy"
	"claudebox/internal/plan"
	"claudebox/internal/profile"
	"claudebox/internal/sandbox/ask"
	"claudebox/internal/sandbox/launch"
)

// Host is a host that was asked for. Its name is not looked up: that would
// tell the network who asks.
type Host struct {
	Name string
	Port int // 0: not said
	// Here is what this machine is connected to, which tier inet keeps closed.
	Here policy.Host
	Add  string // the command that lists it in the profile; empty: none does
}

// webPort is what is asked for where no port was said.
const webPort = 443

// HostOf returns the HOST or HOST:PORT of a URL, or of a place as git takes it; false for what is none.
func HostOf(word string) (host string, is bool) {
	if host, is = ask.HostOf(word); is {
		return host, true
	}
	return ask.RemoteOf(word)
}

// ParseHost reads HOST or HOST:PORT; an IPv6 address with a port stands in
// brackets. It returns false for anything else.
func ParseHost(text string) (Host, bool) {
	if address, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return Host{Name: address.String()}, true
	}
	h := Host{Name: strings.Trim(text, "[]")}
	if colon := strings.LastIndexByte(text, ':'); colon >= 0 {
		port, err := strconv.ParseUint(text[colon+1:], 10, 16)
		if err != nil || port == 0 {
			return Host{}, false
		}
		h = Host{Name: strings.Trim(text[:colon], "[]"), Port: int(port)}
	}
	return h, h.Name != ""
}

func (h Host) String() string {
	if h.Port == 0 {
		return h.Name
	}
	return h.Name + ":" + strconv.Itoa(h.Port)
}

// called is how an answer names the host: a word that need not be one is called "the host".
func (h Host) called() string {
	if h.Port == 0 && !strings.ContainsAny(h.Name, ".:") {
		return "the host " + h.Name
	}
	return h.String()
}

// Reach answers whether a host can be reached.
func Reach(l launch.Launch, h Host) Answer {
	rule := "network: " + l.Tier
	if policy.IsLoopback(h.Name) && l.Tier != profile.TierFull {
		return loopback(l, h, rule)
	}
	switch l.Tier {
	case profile.TierFull:
		return yes(h.called()+" is reached as from here, your own network and this machine included", rule,
			"`network: inet` leaves the internet only")
	case profile.TierInet:
		return inet(l, h, rule)
	case profile.TierAllow:
		return listed(l, h, rule)
	}
	change := "`--network " + h.tier() + "`"
	if _, err := netip.ParseAddr(h.Name); err != nil {
		change = fmt.Sprintf("`network: {tier: allow, allow: [%s]}` in the profile, or %s", h, change)
	}
	return no("there is no network but loopback inside", rule, change)
}

// tier is the least of those without a list that reaches a host.
func (h Host) tier() string {
	address, err := netip.ParseAddr(h.Name)
	if err == nil && policy.Refuses(policy.Host{}, address) != "" {
		return profile.TierFull
	}
	return profile.TierInet
}

func loopback(l launch.Launch, h Host, rule string) Answer {
	if slices.Contains(l.Plan.Network.Out, h.Port) {
		return yes(fmt.Sprintf("port %d of the sandbox's own loopback leads to this machine's", h.Port), "ports.out",
			"take it out of ports.out")
	}
	return no(h.Name+" is the sandbox itself, not this machine", rule, h.carried())
}

// carried is the change of a profile by which the sandbox reaches a port of this machine.
func (h Host) carried() string {
	if h.Port == 0 {
		return "`ports: {out: [PORT]}` in the profile"
	}
	return fmt.Sprintf("`ports: {out: [%d]}` in the profile", h.Port)
}

func inet(l launch.Launch, h Host, rule string) Answer {
	address, err := netip.ParseAddr(h.Name)
	if err != nil {
		return yes(h.called()+" is reached, unless its name leads to a private address or this machine", rule,
			"`network: {tier: allow, allow: […]}` names hosts")
	}
	if h.Here.Is(address) { // an exception does not open it
		return no(h.Name+" is "+policy.ThisMachine, rule, h.carried())
	}
	if excepted(l, address, h.Port) {
		return yes(h.String()+" is of your own network, and reached all the same", "network.except",
			"take it out of network.except")
	}
	if reason := policy.Refuses(h.Here, address); reason != "" {
		change := "`network: full` reaches all of your network"
		if _, err := policy.ParseException(h.String()); err == nil {
			change = fmt.Sprintf("`network: {tier: inet, except: [%q]}` in your profile reaches it; ", h.String()) + change
		}
		return no(h.Name+" is "+reason, rule, change)
	}
	return yes(h.String()+" is an address of the internet", rule, "")
}

// excepted reports whether the profile opens an address in the user's own network. Port
// 0 means that none was said.
func excepted(l launch.Launch, address netip.Addr, port int) bool {
	for _, text := range l.Plan.Network.Except {
		if e, err := policy.ParseException(text); err == nil && e.Covers(address.Unmap(), uint16(port)) {
			return true
		}
	}
	return false
}

func listed(l launch.Launch, h Host, rule string) Answer {
	name, err := hostpattern.Canonical(h.Name)
	if err != nil {
		return no(h.Name+" is "+err.Error()+": tier allow reaches names only", rule, "")
	}
	list, err := hostpattern.ParseList(l.Plan.Network.Allow)
	if err != nil {
		return no("the list of hosts cannot be read: "+err.Error(), rule, "")
	}
	port := cmp.Or(h.Port, webPort)
	if pattern, found := list.Find(name, port); found {
		return yes(h.String()+" is reached by its name, "+condition(l.Plan.Network, name, port),
			rule+", allow: "+pattern.String(), "")
	}
	change := fmt.Sprintf("`network: {tier: allow, allow: [%s]}` in the profile", h)
	if h.Add != "" {
		change = h.Add
	}
	return no(h.String()+" is not on the list of hosts", rule, change)
}

// condition says where the name of a host may lead for it to be reached.
func condition(n plan.Network, name string, port int) string {
	if n.Via != "" {
		return "by the proxy " + n.Via + ", which looks it up"
	}
	private, err := hostpattern.ParseList(n.Private)
	if _, found := private.Find(name, port); err == nil && found {
		return "in your own network too, unless its name leads to this machine"
	}
	return "unless its name leads to a private address"
}
