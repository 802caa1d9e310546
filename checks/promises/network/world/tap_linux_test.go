package world

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// What the host's kernel says by itself, as an error of ICMPv6 to somebody on the LAN, is no packet of a sandbox.
func TestWhatAHostSaysByItselfIsNotCounted(t *testing.T) {
	lan, group := netip.MustParseAddr("2001:db8:77::2"), netip.MustParseAddr("ff02::16")
	for p, want := range map[Packet]bool{
		{lan, unix.IPPROTO_ICMPV6, 1}: true, {lan, unix.IPPROTO_ICMPV6, 3}: true, {lan, unix.IPPROTO_ICMPV6, 136}: true,
		{lan, unix.IPPROTO_ICMP, 3}: true, {lan, unix.IPPROTO_ICMP, 11}: true, {group, unix.IPPROTO_HOPOPTS, 0}: true,
		{lan, unix.IPPROTO_ICMPV6, 128}: false, {lan, unix.IPPROTO_ICMPV6, 129}: false, {lan, unix.IPPROTO_ICMP, 8}: false,
		{lan, unix.IPPROTO_UDP, 3}: false, {lan, unix.IPPROTO_TCP, 80}: false, {lan, unix.IPPROTO_HOPOPTS, 0}: false, {lan, 132, 0}: false,
	} {
		if got := p.chatter(); got != want {
			t.Errorf("%s: %t", p, got)
		}
	}
}
