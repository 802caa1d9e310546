package policy

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Exception allows one host or network among this machine's own.
type Exception struct {
	Prefix netip.Prefix
	Port   uint16 // 0: any
}

// ParseException reads ADDRESS or NETWORK/BITS, either with :PORT; an IPv6 address
// with a port is in brackets. It refuses what no rule may allow.
func ParseException(text string) (Exception, error) {
	place, port, ported := text, "", false
	if inside, bracketed := strings.CutPrefix(text, "["); bracketed {
		place, port, bracketed = strings.Cut(inside, "]")
		if port, ported = strings.CutPrefix(port, ":"); !bracketed || !ported && port != "" {
			return Exception{}, fmt.Errorf("%q is neither [ADDRESS] nor [ADDRESS]:PORT", text)
		}
	} else if strings.Count(text, ":") == 1 {
		place, port, ported = strings.Cut(text, ":")
	}
	var e Exception
	prefix, err := netip.ParsePrefix(place)
	if err != nil {
		addr, failed := netip.ParseAddr(place)
		if failed != nil || addr.Zone() != "" {
			return Exception{}, fmt.Errorf("%q is no address and no network", text)
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	e.Prefix = prefix
	if prefix != prefix.Masked() {
		return Exception{}, fmt.Errorf("%s has bits behind its length; the network is %s", prefix, prefix.Masked())
	}
	if ported {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return Exception{}, fmt.Errorf("%q is not a port", port)
		}
		e.Port = uint16(n)
	}
	if why := never(Host{}, prefix.Addr().Unmap()); why != "" || prefix.Bits() == 0 {
		return Exception{}, fmt.Errorf("%s cannot be opened: it is %s", text, orEverything(why))
	}
	return e, nil
}

func orEverything(why string) string {
	if why == "" {
		return "everything"
	}
	return why
}

// Covers reports whether the exception allows an address at a port.
func (e Exception) Covers(a netip.Addr, port uint16) bool {
	return e.Prefix.Contains(a) && (e.Port == 0 || e.Port == port)
}

// String returns the exception in the form that [ParseException] reads.
func (e Exception) String() string {
	text := e.Prefix.String()
	if e.Prefix.IsSingleIP() {
		text = e.Prefix.Addr().String()
	}
	switch {
	case e.Port == 0:
		return text
	case e.Prefix.Addr().Is6():
		return fmt.Sprintf("[%s]:%d", text, e.Port)
	}
	return fmt.Sprintf("%s:%d", text, e.Port)
}
