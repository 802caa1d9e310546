//go:build lab

package network_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"claudebox/checks/kit/must"
	"claudebox/checks/kit/trial"
	"claudebox/checks/promises/network/target"
	"claudebox/checks/promises/network/world"
	"claudebox/internal/network/dns"
	"claudebox/internal/network/link"
)

// Frames of every kind, written to the interface by somebody who has all rights
// inside, which nobody has: nothing is sent that may not be, the helper lives and
// stays small, and the network goes on.
func TestRawFramesOfEveryKind(t *testing.T) {
	t.Parallel()
	count := trial.Count(20_000, 2_000_000)
	for name, layout := range map[string]world.Layout{"tun": world.Systemd, "veth": withoutTun()} {
		for _, tier := range []string{"inet", "allow"} {
			t.Run(name+", "+tier, func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				u := newUser(t, w)
				u.layout = layout
				const script = "curl -sS http://good.test/; echo ready; read line; curl -sS http://good.test/; read line || true"
				talk := converse(t, u.session(t, script, u.in(t, tier, "")...))
				if got := talk.wait(t, "ready"); len(got) != 1 || !strings.HasPrefix(got[0], "internet") {
					t.Fatalf("before: %q", got)
				}
				helper := helperOf(t, talk.cmd.Process.Pid)
				talk.hang.Stop() // nothing is to be heard meanwhile
				writeFrames(t, sandboxOf(t, talk.cmd.Process.Pid), name == "veth", count)
				talk.hang.Reset(patience)
				talk.say(t, "")
				after := ""
				if talk.stdout.Scan() {
					after = talk.stdout.Text()
				}
				if !strings.HasPrefix(after, "internet") {
					t.Errorf("after: %q, %s", after, talk.stderr)
				}
				if now := helperOf(t, talk.cmd.Process.Pid); now != helper {
					t.Errorf("the helper %d has ended, and %d has come", helper, now)
				}
				if kib := resident(t, helper); kib > most {
					t.Errorf("the helper has had %d KiB; want %d at most", kib, most)
				}
				talk.end(t)
				wantInBounds(t, w)
				if tier == "inet" && len(arrived(t, w)) < 10 {
					t.Errorf("little has come out at all: %v", arrived(t, w))
				}
				for _, p := range arrived(t, w) {
					if tier == "allow" && p.To.String() != target.Internet && p.To.String() != target.Internet6 {
						t.Errorf("sent to %s", p)
					}
				}
			})
		}
	}
}

// sandboxOf is a process of claudebox's in another network namespace than its own.
func sandboxOf(t *testing.T, claudebox int) string {
	t.Helper()
	own, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", claudebox))
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", claudebox))
	for _, file := range all {
		text, _ := os.ReadFile(file)
		for _, pid := range strings.Fields(string(text)) {
			if ns, err := os.Readlink("/proc/" + pid + "/ns/net"); err == nil && ns != own {
				return pid
			}
		}
	}
	t.Fatal("the sandbox is not found")
	return ""
}

// writeFrames writes so many frames to the sandbox's interface.
func writeFrames(t *testing.T, process string, ethernet bool, count int) {
	t.Helper()
	fd, index, err := world.PacketSocket(process, link.Device)
	must.Do(t, err)
	defer unix.Close(fd)
	seed := rand.Uint64()
	t.Logf("frames of seed %d", seed)
	make, sent := framer{rand.New(rand.NewPCG(seed, 1))}, 0
	for range count {
		frame, protocol := make.packet()
		if ethernet {
			head := append(append([]byte{}, link.HelperMAC...), link.SandboxMAC...)
			if make.oneIn(20) {
				head[make.IntN(len(head))] = byte(make.Uint32())
			}
			frame = append(binary.BigEndian.AppendUint16(head, protocol), frame...)
		}
		if unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: index, Protocol: protocol>>8 | protocol<<8}) == nil {
			sent++
		}
	}
	if sent < count/2 {
		t.Errorf("%d of %d frames could be sent", sent, count)
	}
}

// framer makes frames.
type framer struct{ *rand.Rand }

func (f framer) oneIn(n int) bool { return f.IntN(n) == 0 }

func (f framer) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(f.Uint32())
	}
	return b
}

// address is one of all that there are, or any.
func (f framer) address(v6 bool) netip.Addr {
	own, server := link.Sandbox4, link.Server4
	name, name6, _ := dns.NewNames().Addresses("good.test")
	if v6 {
		own, server, name = link.Sandbox6, link.Server6, name6
	}
	for range 20 {
		a := target.All[f.IntN(len(target.All))].Addr
		if f.oneIn(3) {
			samples := target.Samples()
			a = samples[f.IntN(len(samples))].Addr
		}
		if a.IsValid() && a.Is6() == v6 {
			return a
		}
	}
	return []netip.Addr{own, server, name}[f.IntN(3)]
}

// packet is one of IP, as a rule well made.
func (f framer) packet() (packet []byte, protocol uint16) {
	v6 := f.oneIn(2)
	from, to := link.Sandbox4, f.address(v6)
	if v6 {
		from = link.Sandbox6
	}
	if f.oneIn(10) {
		from = f.address(v6)
	}
	if f.oneIn(6) {
		to = map[bool]netip.Addr{false: link.Server4, true: link.Server6}[v6]
	}
	kind := []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6, byte(f.Uint32())}[f.IntN(5)]
	body := f.body(kind, from, to)
	if v6 {
		packet, protocol = f.ipv6(kind, from, to, body), unix.ETH_P_IPV6
	} else {
		packet, protocol = f.ipv4(kind, from, to, body), unix.ETH_P_IP
	}
	switch f.IntN(20) {
	case 0:
		packet = packet[:f.IntN(len(packet))+1]
	case 1:
		packet[f.IntN(len(packet))] ^= 1 << f.IntN(8)
	case 2:
		protocol = uint16(f.Uint32())
	}
	return packet, protocol
}

// body is what a packet of a kind carries, with its sum.
func (f framer) body(kind byte, from, to netip.Addr) []byte {
	ports := []uint16{53, 80, 443, 22, 8080, uint16(f.Uint32())}
	body := f.bytes(20 + f.IntN(60))
	if f.oneIn(200) {
		body = f.bytes(60_000)
	}
	at := -1
	switch kind {
	case unix.IPPROTO_TCP:
		binary.BigEndian.PutUint16(body[2:], ports[f.IntN(len(ports))])
		body[12], at = 5<<4, 16
		if !f.oneIn(4) {
			body[13] = 2 // SYN
		}
	case unix.IPPROTO_UDP:
		binary.BigEndian.PutUint16(body[2:], ports[f.IntN(len(ports))])
		binary.BigEndian.PutUint16(body[4:], uint16(len(body)))
		at = 6
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		if f.oneIn(2) {
			body[0], body[1] = map[byte]byte{unix.IPPROTO_ICMP: 8, unix.IPPROTO_ICMPV6: 128}[kind], 0
		}
		at = 2
	}
	if at > 0 {
		body[at], body[at+1] = 0, 0
		var sum uint32
		if kind != unix.IPPROTO_ICMP {
			sum = summed(0, from.AsSlice(), to.AsSlice(), []byte{0, kind}, binary.BigEndian.AppendUint16(nil, uint16(len(body))))
		}
		binary.BigEndian.PutUint16(body[at:], ^folded(summed(sum, body)))
	}
	return body
}

func (f framer) ipv4(kind byte, from, to netip.Addr, body []byte) []byte {
	head := make([]byte, 20)
	if f.oneIn(8) {
		head = append(head, f.bytes(4*(1+f.IntN(9)))...)
	}
	head[0], head[8], head[9] = 4<<4|byte(len(head)/4), 64, kind
	binary.BigEndian.PutUint16(head[2:], uint16(len(head)+len(body)))
	binary.BigEndian.PutUint16(head[4:], uint16(f.IntN(8))) // the same numbers again: fragments meet
	if f.oneIn(5) {
		binary.BigEndian.PutUint16(head[6:], uint16(f.Uint32())&0xe00f)
	}
	copy(head[12:], from.AsSlice())
	copy(head[16:], to.AsSlice())
	binary.BigEndian.PutUint16(head[10:], ^folded(summed(0, head)))
	return append(head, body...)
}

func (f framer) ipv6(kind byte, from, to netip.Addr, body []byte) []byte {
	for f.oneIn(4) { // headers before the content: hop by hop, routing, fragment, destination
		extension := f.bytes(8)
		extension[0], extension[1] = kind, 0
		if kind = []byte{0, 43, 44, 60}[f.IntN(4)]; kind == 44 {
			extension[2] = 0
			binary.BigEndian.PutUint32(extension[4:], uint32(f.IntN(8)))
		}
		body = append(extension, body...)
	}
	head := make([]byte, 40)
	head[0], head[6], head[7] = 6<<4, kind, 64
	binary.BigEndian.PutUint16(head[4:], uint16(len(body)))
	copy(head[8:], from.AsSlice())
	copy(head[24:], to.AsSlice())
	return append(head, body...)
}

// summed adds to a sum of RFC 1071.
func summed(sum uint32, parts ...[]byte) uint32 {
	for _, b := range parts {
		for i := 0; i < len(b); i += 2 {
			word := uint32(b[i]) << 8
			if i+1 < len(b) {
				word |= uint32(b[i+1])
			}
			sum += word
		}
	}
	return sum
}

func folded(sum uint32) uint16 {
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
