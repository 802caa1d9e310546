//go:build lab

package network_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"claudebox/checks/network/target"
	"claudebox/checks/network/world"
)

// get is a whole request to a host.
func get(host string) string {
	return "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
}

// connect opens a tunnel and asks through it.
func connect(to string) string {
	host := strings.TrimSuffix(to, ":80")
	return "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n" + get(host)
}

// socks is a client's whole side of SOCKS5: no password, a command, an address
// as its type and bytes, a port, and a request.
func socks(command byte, address string, port byte) string {
	return "\x05\x01\x00\x05" + string([]byte{command}) + "\x00" + address + "\x00" + string([]byte{port}) + get("good.test")
}

func named(name string) string { return "\x03" + string([]byte{byte(len(name))}) + name }

// cunning are requests to the proxy that lead out of bounds, if it falls for
// them. Whoever is reached says its name.
var cunning = map[string]string{
	"an address":                             connect("203.0.113.53:80"),
	"an address of the LAN":                  connect("192.168.77.2:80"),
	"the metadata service":                   connect("169.254.169.254:80"),
	"the host's loopback":                    connect("127.0.0.1:8080"),
	"the host's loopback, IPv6":              connect("[::1]:8080"),
	"the host's loopback, by no address":     connect("0.0.0.0:8080"),
	"the host's loopback, short":             connect("127.1:8080"),
	"the host's loopback, as a number":       connect("2130706433:8080"),
	"the host's loopback, in hexadecimal":    connect("0x7f000001:8080"),
	"the host's loopback, in octal":          connect("0177.0.0.1:8080"),
	"the LAN in IPv6's clothes":              connect("[::ffff:192.168.77.2]:80"),
	"the LAN by NAT64":                       connect("[64:ff9b::c0a8:4d02]:80"),
	"the LAN by 6to4":                        connect("[2002:c0a8:4d02::1]:80"),
	"a link-local address":                   connect("[fe80::1%eth0]:80"),
	"a link-local address, escaped":          connect("[fe80::1%25eth0]:80"),
	"a host that is not listed":              connect("other.test:80"),
	"a host of the same letters' end":        connect("evilgood.test:80"),
	"a listed host as the user of another":   connect("good.test@other.test:80"),
	"a listed host and port as the user":     connect("good.test:80@192.168.77.2:80"),
	"a NUL byte before a listed host":        connect("other.test\x00.good.test:80"),
	"a NUL byte behind":                      connect("other.test\x00good.test:80"),
	"a line break in the name":               connect("good.test:80\r\nHost: other.test"),
	"an escaped name":                        connect("%6fther.test:80"),
	"a port that is not listed":              connect("good.test:8080"),
	"a port past the last":                   connect("good.test:65616"),
	"rebinding to the LAN":                   connect("rebind.test:80"),
	"rebinding to a ULA":                     connect("rebind6.test:80"),
	"rebinding to the metadata service":      connect("meta.test:80"),
	"rebinding to the loopback":              connect("loopback.test:8080"),
	"an absolute address":                    "GET http://other.test/ HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n",
	"an absolute address of the LAN":         "GET http://192.168.77.2/ HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n",
	"an address with a user":                 "GET http://good.test@other.test/ HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n",
	"an address with a backslash":            "GET http://other.test\\@good.test/ HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n",
	"no address but a header":                "GET / HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n",
	"two headers":                            "GET / HTTP/1.1\r\nHost: good.test\r\nHost: other.test\r\nConnection: close\r\n\r\n",
	"a second request behind a first":        "GET http://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\nGET http://other.test/ HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n",
	"a request in a body of two lengths":     "POST http://good.test/ HTTP/1.1\r\nHost: good.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://other.test/ HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n",
	"HTTP/2 at once":                         "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	"HTTP/2 by an upgrade":                   "GET http://other.test/ HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n",
	"SOCKS to an address":                    socks(1, "\x01\xcb\x00\x71\x35", 80),
	"SOCKS to the LAN":                       socks(1, "\x01\xc0\xa8\x4d\x02", 80),
	"SOCKS to a ULA":                         socks(1, "\x04\xfd\x00\x00\x77\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05", 80),
	"SOCKS to a host that is not listed":     socks(1, named("other.test"), 80),
	"SOCKS with a NUL byte in the name":      socks(1, named("other.test\x00.good.test"), 80),
	"SOCKS with an address for a name":       socks(1, named("192.168.77.2"), 80),
	"SOCKS with a rebinding name":            socks(1, named("rebind.test"), 80),
	"SOCKS with a port that is not listed":   socks(1, named("good.test"), 22),
	"SOCKS that would listen":                socks(2, named("good.test"), 80),
	"SOCKS for datagrams":                    socks(3, named("good.test"), 80),
	"SOCKS4 to the LAN":                      "\x04\x01\x00\x50\xc0\xa8\x4d\x02\x00" + get("good.test"),
	"SOCKS4 with a name":                     "\x04\x01\x00\x50\x00\x00\x00\x01\x00other.test\x00" + get("good.test"),
	"the proxy's own address by a host name": "GET http://localhost:8080/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
}

func TestTheProxyFallsForNothing(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	u := newUser(t, w)
	names := []string{"straight"}
	sent := []string{connect("good.test:80")}
	names, sent = append(names, "straight, by SOCKS"), append(sent, socks(1, named("good.test"), 80))
	for name, request := range cunning {
		names, sent = append(names, name), append(sent, request)
	}
	hosts := "good.test, rebind.test, rebind6.test, meta.test, loopback.test, \"*.sample.test\""
	for i, sample := range target.Samples() {
		names, sent = append(names, "rebinding to "+sample.Name), append(sent, connect(world.SampleName(i)+":80"))
	}
	answers := u.requests(t, hosts, sent)
	for i, answer := range answers[:2] {
		if len(places(answer)) != 1 {
			t.Fatalf("a request that is in order, %s: %q", names[i], answer)
		}
	}
	for i, answer := range answers {
		for _, place := range places(answer) {
			if place != "internet" && place != "internet 6" {
				t.Errorf("%s: reached %s", names[i], place)
			}
		}
	}
	wantInBounds(t, w)
}

// requests are sent to the proxy, from inside; the answers are in their order.
func (u *user) requests(t *testing.T, hosts string, sent []string) []string {
	t.Helper()
	var input strings.Builder
	for _, s := range sent {
		fmt.Fprintln(&input, strconv.Quote(s))
	}
	cmd := u.probing(t, []string{"requests"}, u.allowing(t, hosts)...)
	cmd.Stdin = strings.NewReader(input.String())
	got := run(t, cmd)
	if got.status != 0 {
		t.Fatalf("status %d, %s", got.status, got.stderr)
	}
	var answers []string
	for line := range strings.Lines(got.stdout) {
		answer, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	if len(answers) != len(sent) {
		t.Fatalf("%d answers to %d requests", len(answers), len(sent))
	}
	return answers
}

// places are the names of who answered: each says its own on a line by itself.
func places(answer string) []string {
	var found []string
	for _, t := range slices.Concat(target.All, target.Samples()) {
		if strings.Contains("\n"+answer, "\n"+t.Name+"\n") {
			found = append(found, t.Name)
		}
	}
	return found
}

// Every sample of what is out of bounds answers to the host itself, so that it
// is the proxy that refuses it.
func TestEverySampleAnswers(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	if len(w.Samples()) < len(target.Samples())*3/4 {
		t.Errorf("only %d of %d ranges can be served", len(w.Samples()), len(target.Samples()))
	}
	for _, s := range w.Samples() {
		answer, err := w.DialFromHost("tcp", s.Addr.String(), s.Port)
		if err != nil || !strings.HasSuffix(answer, "\n"+s.Name+"\n") {
			t.Errorf("%s at %s: %q, %v", s.Name, s.Addr, answer, err)
		}
	}
}
