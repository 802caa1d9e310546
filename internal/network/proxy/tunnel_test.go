package proxy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// helloOf is the client hello that Go's TLS sends for a configuration.
func helloOf(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	here, there := net.Pipe()
	defer there.Close()
	go tls.Client(here, config).Handshake()
	there.SetDeadline(time.Now().Add(patience))
	header := make([]byte, 5)
	if _, err := io.ReadFull(there, header); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(there, body); err != nil {
		t.Fatal(err)
	}
	return append(header, body...)
}

func namedHello(t testing.TB, name string) []byte {
	return helloOf(t, &tls.Config{ServerName: name})
}

// inRecords cuts a hello into records of a size.
func inRecords(hello []byte, size int) []byte {
	var b bytes.Buffer
	for body := hello[5:]; len(body) > 0; {
		n := min(size, len(body))
		b.Write(hello[:3])
		b.Write(binary.BigEndian.AppendUint16(nil, uint16(n)))
		b.Write(body[:n])
		body = body[n:]
	}
	return b.Bytes()
}

// withExtension adds an extension at the end of a hello.
func withExtension(t testing.TB, hello []byte, kind uint16, body []byte) []byte {
	t.Helper()
	extension := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, kind), uint16(len(body)))
	extension = append(extension, body...)
	message := bytes.Clone(hello[5:])
	h := cursor{rest: message[4:]}
	h.skip(34)
	h.vector(1)
	h.vector(2)
	h.vector(1)
	at := len(message) - len(h.rest)
	grow(message[at:], 2, len(extension))
	grow(message[1:], 3, len(extension))
	message = append(message, extension...)
	return append(append(bytes.Clone(hello[:3]), binary.BigEndian.AppendUint16(nil, uint16(len(message)))...), message...)
}

func grow(number []byte, size, by int) {
	for i := size - 1; i >= 0; i-- {
		by += int(number[i])
		number[i] = byte(by)
		by >>= 8
	}
}

// echConfigs is an ECHConfigList for cover.example (RFC 9849, 4).
func echConfigs(t testing.TB) []byte {
	t.Helper()
	key := make([]byte, 32)
	rand.Read(key)
	vector := func(b []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...) }
	contents := []byte{7, 0, 0x20} // id; KEM: X25519
	contents = append(contents, vector(key)...)
	contents = append(contents, vector([]byte{0, 1, 0, 1})...) // HKDF-SHA256, AES-128-GCM
	contents = append(contents, 0, byte(len("good.example")))
	contents = append(contents, "good.example"...)
	contents = append(contents, 0, 0)
	return vector(append([]byte{0xfe, 0x0d}, vector(contents)...))
}

func TestServerNames(t *testing.T) {
	hello := namedHello(t, "good.example")
	for name, tc := range map[string]struct {
		begin []byte
		want  string
		fault error
	}{
		"in one record":                  {hello, "good.example", nil},
		"in many records":                {inRecords(hello, 100), "good.example", nil},
		"a byte a record":                {inRecords(hello, 1), "good.example", nil},
		"with more behind it":            {append(bytes.Clone(hello), "more"...), "good.example", nil},
		"not yet whole":                  {hello[:len(hello)-1], "", errShort},
		"the header only":                {hello[:5], "", errShort},
		"one byte":                       {hello[:1], "", errShort},
		"no name":                        {helloOf(t, &tls.Config{InsecureSkipVerify: true}), "", errNoName},
		"two names":                      {withExtension(t, hello, extServerName, []byte("\x00\x0f\x00\x00\x0cevil.example")), "", errNotHello},
		"a name that is empty":           {withExtension(t, helloOf(t, &tls.Config{InsecureSkipVerify: true}), extServerName, []byte{0, 3, 0, 0, 0}), "", errNotHello},
		"a list of two names":            {withExtension(t, helloOf(t, &tls.Config{InsecureSkipVerify: true}), extServerName, []byte("\x00\x08\x00\x00\x01a\x00\x00\x01b")), "", errNotHello},
		"an encrypted hello":             {helloOf(t, &tls.Config{ServerName: "evil.example", EncryptedClientHelloConfigList: echConfigs(t), MinVersion: tls.VersionTLS13}), "", errEncrypted},
		"what looks like one":            {withExtension(t, hello, extECH, []byte{0}), "", errEncrypted},
		"an encrypted name of old":       {withExtension(t, hello, extESNI, []byte{0}), "", errEncrypted},
		"HTTP":                           {[]byte("GET / HTTP/1.1\r\n"), "", errNotHello},
		"HTTP/2 with prior knowledge":    {[]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "", errNotHello},
		"SSH":                            {[]byte("SSH-2.0-x\r\n"), "", errNotHello},
		"the hello of SSL 2":             {[]byte{0x80, 0x2e, 1, 3, 1}, "", errNotHello},
		"another message of TLS":         {append([]byte{22, 3, 1, 0, 4}, 2, 0, 0, 0), "", errNotHello},
		"a record of nothing":            {[]byte{22, 3, 1, 0, 0}, "", errNotHello},
		"a record that is too long":      {[]byte{22, 3, 1, 0xff, 0xff}, "", errNotHello},
		"a hello that is too long":       {append([]byte{22, 3, 1, 0, 4}, 1, 0xff, 0xff, 0xff), "", errNotHello},
		"a hello with less than it says": {append([]byte{22, 3, 1, 0, 4}, 1, 0, 0, 0), "", errNotHello},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := serverName(tc.begin)
			if got != tc.want || !errors.Is(err, tc.fault) {
				t.Errorf("got %q, %v; want %q, %v", got, err, tc.want, tc.fault)
			}
		})
	}
}

// A server reads the name as we do, or refuses the hello: for any bytes.
func FuzzServerName(f *testing.F) {
	hello := namedHello(f, "good.example")
	f.Add(hello)
	f.Add(inRecords(hello, 50))
	f.Add(withExtension(f, hello, 0xabcd, []byte("x")))
	stop := errors.New("the hello is read")
	f.Fuzz(func(t *testing.T, begin []byte) {
		name, err := serverName(begin)
		if err != nil {
			return
		}
		read := ""
		config := &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			read = h.ServerName
			return nil, stop
		}}
		server := tls.Server(&stream{Reader: bytes.NewReader(begin)}, config)
		if err := server.Handshake(); errors.Is(err, stop) && read != strings.TrimSuffix(name, ".") {
			t.Errorf("the server reads %q, we read %q", read, name)
		}
	})
}

// stream is a connection that was recorded.
type stream struct {
	io.Reader
	net.Conn
}

func (s *stream) Read(p []byte) (int, error)       { return s.Reader.Read(p) }
func (s *stream) Write(p []byte) (int, error)      { return len(p), nil }
func (s *stream) Close() error                     { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }
func (s *stream) SetDeadline(time.Time) error      { return nil }

// secure serves TLS for a target, and says hello to who comes through.
func (w *world) secure(to string, names ...string) *x509.CertPool {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		w.t.Fatal(err)
	}
	l := listen(w.t)
	w.lead(to, l.Addr().String())
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				c := tls.Server(conn, config)
				if c.Handshake() == nil {
					io.WriteString(c, "hello")
					c.CloseWrite()
				}
			}()
		}
	}()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		w.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool
}

func TestTLSPassesThroughATunnel(t *testing.T) {
	for _, name := range []string{"good.example", "GOOD.example"} {
		w := newWorld(t, "good.example")
		pool := w.secure("good.example:443", "good.example")
		conn, _ := w.tunnel("Good.Example.:443")
		c := tls.Client(conn, &tls.Config{ServerName: name, RootCAs: pool})
		got, err := io.ReadAll(c)
		if string(got) != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if told := w.journal.Summary(); told != "" {
			t.Errorf("the user is told %q", told)
		}
	}
}

// Through a tunnel to one host, TLS for another: domain fronting, as far as
// it can be seen from outside.
func TestDomainFronting(t *testing.T) {
	hello := namedHello(t, "evil.example")
	for name, tc := range map[string]struct {
		to, told string
		begin    []byte
	}{
		"the name of another host":             {"good.example:443", "another host: evil.example", hello},
		"the name of another host, in pieces":  {"good.example:443", "another host: evil.example", inRecords(hello, 3)},
		"the name of a host below":             {"good.example:443", "another host: a.good.example", namedHello(t, "a.good.example")},
		"no name":                              {"good.example:443", "without a server name", helloOf(t, &tls.Config{InsecureSkipVerify: true})},
		"an encrypted name":                    {"good.example:443", "encrypted", helloOf(t, &tls.Config{ServerName: "evil.example", EncryptedClientHelloConfigList: echConfigs(t), MinVersion: tls.VersionTLS13})},
		"no TLS at the port of TLS":            {"good.example:443", "not a TLS client hello", []byte("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")},
		"HTTP/2 at the port of TLS":            {"good.example:443", "not a TLS client hello", []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
		"TLS for another host on another port": {"good.example:8443", "another host: evil.example", hello},
		"TLS for another host on port 80":      {"good.example:80", "another host: evil.example", hello},
		"a broken hello on another port":       {"good.example:8443", "not a TLS client hello", []byte{22, 3, 1, 0, 1, 2, 9, 9, 9, 9, 9, 9}},
		"HTTP for another host on port 80":     {"good.example:80", "another host: evil.example", []byte("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")},
		"HTTP for no host on port 80":          {"good.example:80", "0 Host fields", []byte("GET / HTTP/1.1\r\n\r\n")},
		"a proxy request in a tunnel":          {"good.example:80", "no request to a server", []byte("GET http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n")},
		"a tunnel in a tunnel":                 {"good.example:80", "no request to a server", []byte("CONNECT evil.example:443 HTTP/1.1\r\nHost: good.example\r\n\r\n")},
		"HTTP/2 with prior knowledge on 80":    {"good.example:80", "not a request of HTTP/1", []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "good.example", "good.example:8443")
			sent := w.record(tc.to)
			conn, r := w.tunnel(tc.to)
			conn.Write(tc.begin)
			io.Copy(io.Discard, r)
			if got := sent(); got != "" {
				t.Errorf("the server got %q", got)
			}
			w.wantTold(tc.told)
		})
	}
}

func TestPlainHTTPPassesThroughATunnelToPort80(t *testing.T) {
	w := newWorld(t, "good.example")
	w.serve("good.example:80")
	conn, r := w.tunnel("good.example:80")
	io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: good.example\r\n\r\n")
	got, _ := io.ReadAll(r)
	if !strings.Contains(string(got), "GET /x of good.example") {
		t.Errorf("got %q", got)
	}
}

// What speaks first in some protocols is the server.
func TestAnotherProtocolPassesAtAPortThatIsListed(t *testing.T) {
	w := newWorld(t, "good.example:22")
	l := listen(t)
	w.lead("good.example:22", l.Addr().String())
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		io.WriteString(conn, "SSH-2.0-server\r\n")
		got := make([]byte, 16)
		io.ReadFull(conn, got)
		conn.Write(got)
		conn.Close()
	}()
	conn, r := w.tunnel("good.example:22")
	if line, err := r.ReadString('\n'); line != "SSH-2.0-server\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	io.WriteString(conn, "SSH-2.0-client\r\n")
	if got, err := io.ReadAll(r); string(got) != "SSH-2.0-client\r\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAClientThatOnlyListensIsAnswered(t *testing.T) {
	w := newWorld(t, "good.example:13")
	l := listen(t)
	w.lead("good.example:13", l.Addr().String())
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.Copy(io.Discard, conn) // the client says that it is done
		io.WriteString(conn, "noon")
	}()
	conn, r := w.tunnel("good.example:13")
	conn.CloseWrite()
	if got, err := io.ReadAll(r); string(got) != "noon" {
		t.Errorf("%q, %v", got, err)
	}
}

// socksRequest is what a SOCKS5 client sends before it has heard anything.
func socksRequest(command, kind byte, address string, port uint16) string {
	b := []byte{socks5, 1, noLogin, socks5, command, 0, kind}
	if kind == addressName {
		b = append(b, byte(len(address)))
	}
	b = append(b, address...)
	return string(binary.BigEndian.AppendUint16(b, port))
}

func TestSOCKSPasses(t *testing.T) {
	w := newWorld(t, "good.example")
	pool := w.secure("good.example:443", "good.example")
	conn := w.open(socksRequest(cmdConnect, addressName, "good.example", 443))
	answer := make([]byte, 2+10)
	if _, err := io.ReadFull(conn, answer); err != nil || answer[3] != socksDone {
		t.Fatalf("% x, %v", answer, err)
	}
	got, err := io.ReadAll(tls.Client(conn, &tls.Config{ServerName: "good.example", RootCAs: pool}))
	if string(got) != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Claude Code's own sandbox let attacker\x00.google.com pass for a name below
// google.com, by a proxy that compared the whole and a resolver that stopped at
// the NUL byte.
func TestSOCKSRequestsThatAreRefused(t *testing.T) {
	ip := func(a string) string { return string(netip.MustParseAddr(a).AsSlice()) }
	for name, tc := range map[string]struct {
		request string
		code    byte
		told    string
	}{
		"a host that is not listed":          {socksRequest(cmdConnect, addressName, "evil.example", 443), socksNotAllowed, "evil.example:443"},
		"a NUL byte in front of a host":      {socksRequest(cmdConnect, addressName, "evil.example\x00.wild.example", 443), socksNotAllowed, `evil.example\x00.wild.example`},
		"a NUL byte behind a host":           {socksRequest(cmdConnect, addressName, "good.example\x00", 443), socksNotAllowed, `good.example\x00`},
		"an IPv4 address":                    {socksRequest(cmdConnect, addressIPv4, ip("203.0.113.10"), 443), socksNotAllowed, "203.0.113.10:443"},
		"an IPv6 address":                    {socksRequest(cmdConnect, addressIPv6, ip("2001:db8::10"), 443), socksNotAllowed, "[2001:db8::10]:443"},
		"an IPv4-mapped address":             {socksRequest(cmdConnect, addressIPv6, ip("::ffff:127.0.0.1"), 443), socksNotAllowed, "an address"},
		"an address as a name":               {socksRequest(cmdConnect, addressName, "127.0.0.1", 443), socksNotAllowed, "an address"},
		"a decimal address as a name":        {socksRequest(cmdConnect, addressName, "2130706433", 443), socksNotAllowed, "an address"},
		"an IPv6 address as a name":          {socksRequest(cmdConnect, addressName, "::1", 443), socksNotAllowed, "an address"},
		"a port in the name":                 {socksRequest(cmdConnect, addressName, "good.example:443", 443), socksNotAllowed, "not a host name"},
		"an empty name":                      {socksRequest(cmdConnect, addressName, "", 443), socksNotAllowed, "no host"},
		"port 0":                             {socksRequest(cmdConnect, addressName, "good.example", 0), socksNotAllowed, "good.example:0"},
		"to be connected to":                 {socksRequest(2, addressName, "good.example", 443), socksNoCommand, "something else"},
		"UDP":                                {socksRequest(3, addressName, "good.example", 443), socksNoCommand, "something else"},
		"a line break for the user's screen": {socksRequest(cmdConnect, addressName, "good.example\nrefused: 1", 443), socksNotAllowed, `good.example\nrefused`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "good.example", "*.wild.example")
			w.serve("good.example:443")
			got := w.say(tc.request)
			if len(got) < 4 || got[3] != tc.code {
				t.Fatalf("answered % x", got)
			}
			w.wantTold(tc.told)
			if len(w.reached) > 0 || strings.Contains(w.journal.Summary(), "\n") {
				t.Errorf("it reached %q, the user is told %q", w.reached, w.journal.Summary())
			}
		})
	}
}

func TestSOCKSThatIsNotServed(t *testing.T) {
	for name, request := range map[string]string{
		"SOCKS4":                     "\x04\x01\x01\xbb\xcb\x00\x71\x0auser\x00",
		"SOCKS4a":                    "\x04\x01\x01\xbb\x00\x00\x00\x01\x00good.example\x00",
		"a login":                    "\x05\x01\x02",
		"another version behind it":  "\x05\x01\x00\x04\x01\x00\x03\x0cgood.example\x01\xbb",
		"an unknown kind of address": "\x05\x01\x00\x05\x01\x00\x02\x0cgood.example\x01\xbb",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "good.example")
			w.serve("good.example:443")
			w.say(request)
			if len(w.reached) > 0 {
				t.Errorf("it reached %q", w.reached)
			}
		})
	}
}
