package world

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"claudebox/checks/promises/network/target"
)

// Packet is where something was sent that has arrived outside.
type Packet struct {
	To       netip.Addr
	Protocol byte   // of IP
	Port     uint16 // of TCP and UDP; the type of ICMP
}

func (p Packet) String() string {
	return fmt.Sprintf("%s, protocol %d, port %d", p.To, p.Protocol, p.Port)
}

// tap hears every packet that reaches the outside: an answer may be lost on its
// way back, and a sandbox that can send has let something out.
type tap struct {
	lock sync.Mutex
	seen map[Packet]bool
	news *sync.Cond

	asked uint16 // questions, see [World.Arrived]
	files []*os.File
}

// marker is a packet that means no more than that all before it were seen. Each question has one of its own.
func marker(question uint16) Packet {
	return Packet{To: netip.MustParseAddr(target.Internet), Protocol: unix.IPPROTO_UDP, Port: firstMarker + question}
}

const firstMarker, mostMarkers = 4242, 1000

func (w *World) listenIn() error {
	w.tap = &tap{seen: map[Packet]bool{}}
	w.tap.news = sync.NewCond(&w.tap.lock)
	for _, version := range []uint16{unix.ETH_P_IP, unix.ETH_P_IPV6} {
		var fd int
		err := w.outside.do(func() (err error) {
			// A socket for one protocol hears what comes in, and not what goes out.
			fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(version>>8|version<<8))
			return err
		})
		if err != nil {
			return os.NewSyscallError("socket", err)
		}
		file := os.NewFile(uintptr(fd), "tap")
		w.tap.files = append(w.tap.files, file)
		go w.tap.hear(file)
	}
	w.closers = append(w.closers, w.tap.close)
	return nil
}

func (t *tap) close() error {
	for _, file := range t.files {
		_ = file.Close() // it may be closed already
	}
	return nil
}

func (t *tap) hear(file *os.File) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := file.Read(buffer)
		if err != nil {
			return
		}
		if p, ok := parse(buffer[:n]); ok {
			t.lock.Lock()
			t.seen[p] = true
			t.news.Broadcast()
			t.lock.Unlock()
		}
	}
}

// parse reads as much of a packet as tells where it goes. What has further
// headers before its ports has none here.
func parse(b []byte) (p Packet, ok bool) {
	var rest []byte
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		p.To, _ = netip.AddrFromSlice(b[16:20])
		p.Protocol, rest = b[9], b[min(len(b), int(b[0]&15)*4):]
	case len(b) >= 40 && b[0]>>4 == 6:
		p.To, _ = netip.AddrFromSlice(b[24:40])
		p.Protocol, rest = b[6], b[40:]
	default:
		return p, false
	}
	switch {
	case len(rest) < 4:
	case p.Protocol == unix.IPPROTO_TCP || p.Protocol == unix.IPPROTO_UDP:
		p.Port = uint16(rest[2])<<8 | uint16(rest[3])
	case p.Protocol == unix.IPPROTO_ICMP || p.Protocol == unix.IPPROTO_ICMPV6:
		p.Port = uint16(rest[0])
	}
	return p, true
}

// chatter is what a host says by itself: IGMP, the errors of ICMP, as that nobody listens, and the ICMPv6 of
// neighbours, routers and groups (RFC 792, RFC 4443, RFC 4861, RFC 3810). No socket without rights sends any of it: those
// for ICMP send echo requests alone.
func (p Packet) chatter() bool {
	const igmp = 2
	switch p.Protocol {
	case igmp:
		return true
	case unix.IPPROTO_ICMP: // unreachable, quench, redirect, time exceeded, a wrong parameter
		return slices.Contains([]uint16{3, 4, 5, 11, 12}, p.Port)
	case unix.IPPROTO_ICMPV6: // below 128 are errors; 128 is the echo request, 129 its reply
		return p.Port < 128 || slices.Contains([]uint16{130, 131, 132, 133, 134, 135, 136, 137, 143}, p.Port)
	case unix.IPPROTO_HOPOPTS: // a report of groups comes behind a header of options
		return p.To.IsMulticast()
	}
	return false
}

// marks reports whether a packet is a marker.
func (p Packet) marks() bool {
	first := marker(0)
	return p.To == first.To && p.Protocol == first.Protocol && p.Port-first.Port < mostMarkers
}

func (w *World) send(marker Packet) error {
	return w.host.do(func() error {
		conn, err := net.Dial("udp", netip.AddrPortFrom(marker.To, marker.Port).String())
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte("x"))
		return errors.Join(err, conn.Close())
	})
}

// Arrived are the packets of the host, and of all sandboxes on it, that have come
// outside so far.
func (w *World) Arrived() ([]Packet, error) {
	t := w.tap
	t.lock.Lock()
	defer t.lock.Unlock()
	mark := marker(t.asked)
	t.asked = (t.asked + 1) % mostMarkers
	for !t.seen[mark] {
		if err := w.send(mark); err != nil {
			return nil, err
		}
		// A busy tap loses packets, this one too: then it is sent again.
		again := time.AfterFunc(time.Second, t.news.Broadcast)
		t.news.Wait()
		again.Stop()
	}
	var list []Packet
	for p := range maps.Keys(t.seen) {
		if !p.chatter() && !p.marks() {
			list = append(list, p)
		}
	}
	return list, nil
}
