package world

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"claudebox/checks/promises/network/target"
)

// resolvers are the world's name servers. All know the same names; asked for
// the text of [WhoAnswers], each says its own.
var resolvers = []struct {
	name, addr string
	onHost     bool
}{
	{"router", target.Router, false},
	{"tailnet", target.TailnetDNS, false},
	{"public", target.PublicDNS, false},
	{"public 6", target.PublicDNS6, false},
	{"link-local", target.Router6 + "%eth0", false},
	{"stub", target.StubDNS, true},
	{captive, target.LANPeer, false},
}

// captive is a portal's resolver before anybody has logged in: every name leads
// to the portal, and whatever is asked for is answered so.
const captive = "captive"

// Names that the resolvers know beside [zone].
const (
	WhoAnswers = "server.test." // TXT: the resolver's name
	Big        = "big.test."    // TXT: more than fits a datagram
)

// zone is where names lead. Some lead astray.
var zone = map[string][]string{
	"good.test.":     {target.Internet, target.Internet6},
	"sub.good.test.": {target.Internet, target.Internet6},
	"other.test.":    {target.PublicDNS},
	"rebind.test.":   {target.LANPeer},
	"rebind6.test.":  {"fd00:77::5"},
	"meta.test.":     {target.Metadata},
	"loopback.test.": {"127.0.0.1", "::1"},
	"house.test.":    {"192.168.88.2"},
	"here.test.":     {target.HostLAN, target.HostULA},
	"ipv4only.arpa.": {"192.0.0.170", "192.0.0.171", "2001:db8:64::c000:aa"}, // see [target.LANByNAT64]

	// Where Claude Code logs in; who answers is a test's own.
	"platform.claude.com.": {target.Internet, target.Internet6},
	"api.anthropic.com.":   {target.Internet, target.Internet6},
	"api.github.com.":      {target.Internet, target.Internet6},
	"github.com.":          {target.Internet, target.Internet6},
}

// SampleName leads to the sample of that index, see [target.Samples].
func SampleName(index int) string { return fmt.Sprintf("%d.sample.test", index) }

func sampleOf(name string) (addresses []string, known bool) {
	for i, s := range target.Samples() {
		if name == SampleName(i)+"." {
			return []string{s.Addr.String()}, true
		}
	}
	return nil, false
}

// bigText is longer than what any resolver sends by UDP unless asked to.
var bigText = strings.Repeat("0123456789", 20)

const bigTexts = 20

// BigAnswer is what [Big] says, its texts with blanks between.
func BigAnswer() string { return strings.TrimSpace(strings.Repeat(bigText+" ", bigTexts)) }

func (w *World) serveNames() error {
	for _, r := range resolvers {
		ns := w.outside
		if r.onHost {
			ns = w.host
		}
		address := net.JoinHostPort(r.addr, "53")
		c, err := ns.listenPacket("udp", address)
		if err != nil {
			return err
		}
		l, err := ns.listen("tcp", address)
		if err != nil {
			return errors.Join(err, c.Close())
		}
		w.closers = append(w.closers, c.Close, l.Close)
		go resolveDatagrams(c, r.name)
		go resolveStreams(l, r.name)
	}
	return nil
}

func resolveDatagrams(c net.PacketConn, server string) {
	const most = 512 // bytes of an answer without EDNS0 (RFC 1035, 2.3.4)
	buffer := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply := answer(buffer[:n], server, most); reply != nil {
			_, _ = c.WriteTo(reply, from)
		}
	}
}

func resolveStreams(l net.Listener, server string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for {
				var length uint16
				if binary.Read(conn, binary.BigEndian, &length) != nil {
					return
				}
				query := make([]byte, length)
				if _, err := io.ReadFull(conn, query); err != nil {
					return
				}
				reply := answer(query, server, 1<<16-1)
				if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
					return
				}
			}
		}()
	}
}

// answer is nil for what is no query. An answer longer than most bytes is cut
// off, and says so.
func answer(query []byte, server string, most int) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil || header.Response {
		return nil
	}
	question, err := p.Question()
	if err != nil {
		return nil
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{question},
	}
	known := records(&m, question, server)
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	if len(packed) > most {
		m.Answers, m.Truncated = nil, true
		packed, _ = m.Pack()
	}
	return packed
}

// records adds the answers to a question, and reports whether the name is known.
func records(m *dnsmessage.Message, q dnsmessage.Question, server string) bool {
	name := strings.ToLower(q.Name.String())
	add := func(kind dnsmessage.Type, body dnsmessage.ResourceBody) {
		if q.Type == kind {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: kind, Class: dnsmessage.ClassINET}, Body: body,
			})
		}
	}
	switch name {
	case WhoAnswers:
		add(dnsmessage.TypeTXT, &dnsmessage.TXTResource{TXT: []string{server}})
		return true
	case Big:
		for range bigTexts {
			add(dnsmessage.TypeTXT, &dnsmessage.TXTResource{TXT: []string{bigText}})
		}
		return true
	}
	if server == captive {
		portal := netip.MustParseAddr(target.LANPeer)
		add(q.Type, &dnsmessage.AResource{A: portal.As4()})
		add(dnsmessage.TypeAAAA, &dnsmessage.AAAAResource{AAAA: portal.As16()})
		return true
	}
	addresses, known := zone[name]
	if !known {
		addresses, known = sampleOf(name)
	}
	for _, a := range addresses {
		if addr := netip.MustParseAddr(a); addr.Is4() {
			add(dnsmessage.TypeA, &dnsmessage.AResource{A: addr.As4()})
		} else {
			add(dnsmessage.TypeAAAA, &dnsmessage.AAAAResource{AAAA: addr.As16()})
		}
	}
	return known
}
