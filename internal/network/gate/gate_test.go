package gate

import (
	"bytes"
	"context"
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
	"strings"
	"sync"
	"testing"
	"time"

	"claudebox/checks/kit/must"
)

const patience = 10 * time.Second

// connection is one whose gate has a client in front and a server behind.
type connection struct {
	client, server net.Conn
	ended          chan error // how listening to the client ended
}

func connect(t *testing.T, name string, port uint16) connection {
	t.Helper()
	client, inner := pair(t)
	outer, server := pair(t)
	g := New(name, port)
	c := connection{client: client, server: server, ended: make(chan error, 1)}
	go func() {
		err := g.Client(t.Context(), inner, outer)
		c.ended <- err
		if err == nil {
			io.Copy(outer, inner)
		}
		outer.(*net.TCPConn).CloseWrite()
		var no *Refused
		if errors.As(err, &no) {
			inner.Close()
			outer.Close()
		}
	}()
	go func() {
		if g.Server(outer, inner) == nil {
			io.Copy(inner, outer)
		}
		inner.(*net.TCPConn).CloseWrite()
	}()
	return c
}

// pair is a connection, from both its ends.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{a, b} {
		c.SetDeadline(time.Now().Add(patience))
		t.Cleanup(func() { c.Close() })
	}
	return a, b
}

// say has a client say everything and end, and returns what the server gets and
// what is said of it.
func say(t *testing.T, name string, port uint16, text string) (got string, err error) {
	t.Helper()
	c := connect(t, name, port)
	if _, err := io.WriteString(c.client, text); err != nil {
		t.Fatal(err)
	}
	c.client.(*net.TCPConn).CloseWrite()
	all, _ := io.ReadAll(c.server)
	return string(all), <-c.ended
}

func TestRequestsInTheClear(t *testing.T) {
	const ok, last = "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n", "POST / HTTP/1.1\r\nHost: good.test\r\n"
	for name, tc := range map[string]struct {
		port uint16
		text string
		want string // what the server gets; "=" is all
		why  string // of a refusal
	}{
		"a request":                     {80, ok, "=", ""},
		"two requests":                  {80, ok + ok, "=", ""},
		"a Host with a port":            {8080, "GET / HTTP/1.1\r\nHost: GOOD.test.:8080\r\n\r\n", "=", ""},
		"of HTTP/1.0":                   {80, "GET / HTTP/1.0\r\nHost: good.test\r\n\r\n", "=", ""},
		"of HTTP/1.0 without a Host":    {80, "GET / HTTP/1.0\r\n\r\n", "", "0 Host fields"},
		"with a body":                   {80, last + "Content-Length: 5\r\nConnection: close\r\n\r\nhello" + ok, "=", ""},
		"in chunks":                     {80, last + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + ok, "=", ""},
		"content that a server leaves":  {80, last + "Content-Length: 37\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", last + "Content-Length: 37\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", ""},
		"content, the connection kept":  {80, last + "Connection: keep-alive\r\nContent-Length: 1\r\n\r\na", last + "Content-Length: 1\r\nConnection: close\r\n\r\na", ""},
		"TLS at the port of HTTP":       {80, string(hello(t, "good.test")), "", "TLS at port 80"},
		"another Host":                  {80, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "another host"},
		"another Host, later (F11)":     {8080, ok + "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", ok, "another host"},
		"a simple request, then one":    {8080, "GET /\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "not one of HTTP/1"},
		"a hello of SSL 2":              {8443, "\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10", "", "SSL 2"},
		"a simple question of another":  {8080, "GET key\r\n", "=", ""},
		"a header of PROXY, then one":   {8080, "PROXY TCP4 1.1.1.1 2.2.2.2 1 80\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "PROXY"},
		"a header of PROXY, no address": {22, "PROXY UNKNOWN\r\n", "", "PROXY"},
		"a header of PROXY, version 2":  {8080, "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c", "", ""},
		"another Host, other port":      {8080, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "another host"},
		"two Hosts":                     {80, "GET / HTTP/1.1\r\nHost: good.test\r\nHost: evil.test\r\n\r\n", "", "2 Host fields"},
		"no Host":                       {80, "GET / HTTP/1.1\r\n\r\n", "", "0 Host fields"},
		"a whole URL":                   {80, "GET http://evil.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n", "", "whole URL"},
		"CONNECT":                       {80, "CONNECT evil.test:443 HTTP/1.1\r\nHost: good.test\r\n\r\n", "", "whole URL"},
		"a request behind a body":       {80, "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 0\r\n\r\n", "another host"},
		"two lengths":                   {80, "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", "", "twice"},
		"a length with a sign":          {80, "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: +5\r\n\r\n", "", "no number"},
		"a length that is dropped":      {80, "POST / HTTP/1.1\r\nHost: good.test\r\nConnection: Content-Length\r\nContent-Length: 5\r\n\r\n", "", "no option"},
		"a chunk with an extension":     {80, last + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n", "=^2", "plain size"},
		"a line break in front":         {8080, "\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"a bare line feed":              {8080, "GET / HTTP/1.1\nHost: evil.test\n\n", "", "lines do not end"},
		"a field that goes on":          {80, "GET / HTTP/1.1\r\nHost: good.test\r\n evil.test\r\n\r\n", "", "not one of HTTP/1"},
		"HTTP/2 without asking":         {8080, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "request line"},
		"HTTP/2 by an upgrade":          {80, "GET / HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n", ok, ""},
		"an upgrade later":              {80, ok + "GET / HTTP/1.1\r\nHost: good.test\r\nUpgrade: websocket\r\n\r\n", ok, "middle"},
		"what is no HTTP, at port 80":   {80, "SSH-2.0-x\r\n", "", "no HTTP"},
		"another protocol":              {22, "SSH-2.0-x\r\nanything\x00", "=", ""},
		"another protocol in binary":    {5432, "\x00\x00\x00\x08\x04\xd2\x16\x2f", "=", ""},
		"another protocol that begins":  {5672, "AMQP\x00\x00\x09\x01", "=", ""},
		"nothing":                       {22, "", "", "EOF"},
		"a form feed in the target":     {8080, "GET /\x0c HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"a control byte in the target":  {8080, "GET /\x01 http/1.1\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"a zero in the target":          {8080, "GET /\x00 HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"a form feed as a space":        {8080, "GET\x0c/\x0cHTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"a tab in front":                {8080, "\tGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"a form feed in front":          {8080, "\x0cGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"a no-break space in front":     {8080, "\xa0GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"a line of space in front":      {8080, "\x0c\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"a simple request, form feed":   {8080, "GET\x0c/\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"a simple request, a whole URL": {8080, "GET http://evil.test/\r\nHost: evil.test\r\n\r\n", "", "request line"},
		"binary of many lines":          {8080, "\x00\x01\nGET /x HTTP/1.1", "=", ""},
		"content of a GET": {
			80, "GET / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 38\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "", "content in a request",
		},
		"content of a HEAD, in chunks": {80, "HEAD / HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", "content in a request"},
		"content of OPTIONS":           {80, "OPTIONS * HTTP/1.1\r\nHost: good.test\r\nContent-Length: 1\r\n\r\na", "", "content in a request"},
		"a GET of no content":          {80, "GET / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 0\r\n\r\n", "=", ""},
		"content of a DELETE": {
			80, "DELETE / HTTP/1.1\r\nHost: good.test\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
			"DELETE / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 1\r\nConnection: close\r\n\r\na", "",
		},
		"a DELETE without": {80, "DELETE / HTTP/1.1\r\nHost: good.test\r\nConnection: keep-alive\r\n\r\n", "=", ""},
		"a coding with a Kelvin sign": {
			80, "POST / HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: chun\u212aed\r\n\r\n0\r\n\r\n", "", "another transfer coding",
		},
		"HTTP at the port of TLS":  {443, ok, "", "no TLS"},
		"a message without an end": {80, "GET / HTTP/1.1\r\nHost: good.test", "", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := say(t, "good.test", tc.port, tc.text)
			if strings.HasPrefix(tc.want, "=") {
				tc.want, _, _ = strings.Cut(tc.text, "5;x")
			}
			if got != tc.want {
				t.Errorf("the server got %q; want %q", got, tc.want)
			}
			if why := "" + text(err); !strings.Contains(why, tc.why) || tc.why == "" && err != nil && !errors.Is(err, io.EOF) && !isRefused(err) {
				t.Errorf("it ended with %v; want %q", err, tc.why)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func isRefused(err error) bool {
	var no *Refused
	return errors.As(err, &no)
}

func TestAWebsocketPassesOnceTheServerHasAgreed(t *testing.T) {
	const ask = "GET /ws HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	for name, tc := range map[string]struct{ answer, want string }{
		"it agrees":     {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "\x81\x05hello"},
		"it does not":   {"HTTP/1.1 200 OK\r\n\r\n", ""},
		"it asks first": {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 S\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, "good.test", 80)
			io.WriteString(c.client, ask+"\x81\x05hello")
			got := make([]byte, len(ask))
			if _, err := io.ReadFull(c.server, got); err != nil || string(got) != ask {
				t.Fatalf("%q, %v", got, err)
			}
			io.WriteString(c.server, tc.answer)
			c.client.(*net.TCPConn).CloseWrite()
			if rest, _ := io.ReadAll(c.server); string(rest) != tc.want {
				t.Errorf("%q passes; want %q", rest, tc.want)
			}
		})
	}
}

func TestAServerThatSpeaksFirstIsHeard(t *testing.T) {
	c := connect(t, "good.test", 22)
	io.WriteString(c.server, "SSH")
	got := make([]byte, 3)
	if _, err := io.ReadFull(c.client, got); err != nil {
		t.Fatal(err)
	}
}

var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"good.test", "evil.test"}}
	text, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}
})

func TestTLSForTheHostPasses(t *testing.T) {
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		for kind, curves := range map[string][]tls.CurveID{"at once": nil, "with a second hello": {tls.CurveP521}} {
			t.Run(name+" "+kind, func(t *testing.T) {
				c := connect(t, "good.test", 443)
				server := tls.Server(c.server, &tls.Config{Certificates: []tls.Certificate{certificate()}, CurvePreferences: curves, MaxVersion: version})
				go func() { io.Copy(server, server); server.Close() }()
				client := tls.Client(c.client, &tls.Config{ServerName: "good.test", InsecureSkipVerify: true})
				const words = "there and back"
				if _, err := io.WriteString(client, words); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(words))
				if _, err := io.ReadFull(client, got); err != nil || string(got) != words {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
	}
}

// F3: the hello after a HelloRetryRequest named another host.
func TestTheSecondHelloIsJudgedToo(t *testing.T) {
	c := connect(t, "good.test", 443)
	c.client.Write(hello(t, "good.test"))
	if _, err := io.ReadFull(c.server, make([]byte, len(hello(t, "good.test")))); err != nil {
		t.Fatal(err)
	}
	retry := append([]byte{recordHandshake, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3}, retryRandom...)
	c.server.Write(append(retry, 0, 0x13, 1, 0))
	change := []byte{20, 3, 3, 0, 1, 1}
	c.client.Write(append(bytes.Clone(change), hello(t, "evil.test")...))
	rest, _ := io.ReadAll(c.server)
	if !bytes.Equal(rest, change) || !isRefused(<-c.ended) {
		t.Errorf("the server got %x", rest)
	}
}

func TestHellosThatDoNotPass(t *testing.T) {
	good := hello(t, "good.test")
	for name, tc := range map[string]struct {
		port uint16
		text []byte
	}{
		"for another host":                {443, hello(t, "evil.test")},
		"for another host, at other port": {8443, hello(t, "evil.test")},
		"for no host":                     {443, hello(t, "")},
		"for another host, byte by byte":  {443, inRecords(hello(t, "evil.test"), 1)},
		"no hello":                        {443, []byte{recordHandshake, 3, 1, 0, 4, 2, 0, 0, 0}},
		"an empty record":                 {443, []byte{recordHandshake, 3, 1, 0, 0}},
		"a longer one":                    {443, []byte{recordHandshake, 3, 1, 0, 4, 1, 1, 0, 0}},
		"behind a warning":                {8443, append([]byte{21, 3, 1, 0, 2, 1, 90}, hello(t, "evil.test")...)},
		"behind a warning of any version": {8443, append([]byte{21, 1, 1, 0, 2, 1, 90}, hello(t, "evil.test")...)},
		"behind a change of cipher":       {8443, append([]byte{20, 3, 3, 0, 1, 1}, good...)},
		"with more behind it":             {443, together(good, hello(t, "evil.test"))},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := say(t, "good.test", tc.port, string(tc.text))
			if got != "" || !isRefused(err) {
				t.Errorf("the server got %x; it ended with %v", got, err)
			}
		})
	}
	for _, size := range []int{1, 50, len(good)} {
		if got, err := say(t, "good.test", 443, string(inRecords(good, size))); got != string(inRecords(good, size)) {
			t.Errorf("in records of %d bytes the server gets %x, %v", size, got, err)
		}
	}
}

// hello is the client hello that Go's TLS sends.
func hello(t testing.TB, name string) []byte {
	t.Helper()
	here, there := net.Pipe()
	defer there.Close()
	go tls.Client(here, &tls.Config{ServerName: name, InsecureSkipVerify: true}).HandshakeContext(context.Background())
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

// together joins two messages in one record.
func together(a, b []byte) []byte {
	body := append(bytes.Clone(a[5:]), b[5:]...)
	return append(binary.BigEndian.AppendUint16(bytes.Clone(a[:3]), uint16(len(body))), body...)
}

// A protocol that has no lines waits for no line's end; a request that is cut
// into pieces is found all the same.
func TestBytesThatAreNoTextPassAtOnce(t *testing.T) {
	c := connect(t, "good.test", 8080)
	for _, piece := range []string{"\x00\x01", "AMQP", "\x0cht", "tp"} {
		io.WriteString(c.client, piece)
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(c.server, got); err != nil || string(got) != piece {
			t.Fatalf("%q, %v", got, err)
		}
	}
	io.WriteString(c.client, "/1.1\r\nHost: evil.test\r\n\r\n")
	if rest, _ := io.ReadAll(c.server); len(rest) > 0 || !isRefused(<-c.ended) {
		t.Errorf("the server got %q", rest)
	}
}

// A server of MySQL speaks first, and its client's answer may begin as a record does.
func TestALoginThatBeginsAsARecordPasses(t *testing.T) {
	login := "\x15\x01\x00\x01\x85\xa6\xff\x01" + strings.Repeat("x", 20)
	if got, err := say(t, "good.test", 3306, login); got != login {
		t.Errorf("the server got %q, %v", got, err)
	}
}

func TestWhatAServerBeganWith(t *testing.T) {
	retrying := append([]byte{recordHandshake, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3}, retryRandom...)
	agreeing := append([]byte{recordHandshake, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3}, make([]byte, 32)...)
	warning := []byte{21, 3, 3, 0, 2, 1, 112}
	for name, tc := range map[string]struct {
		said  []byte
		want  answer
		known bool
	}{
		"a hello":                       {agreeing, other, true},
		"a retry":                       {retrying, retry, true},
		"a warning":                     {warning, other, false},
		"the beginning of a warning":    {warning[:3], other, false},
		"one byte of a warning":         {warning[:1], other, false},
		"a warning, then a retry":       {append(bytes.Clone(warning), retrying...), retry, true},
		"a warning, then a hello":       {append(bytes.Clone(warning), agreeing...), other, true},
		"another message in front":      {append([]byte{recordHandshake, 3, 3, 0, 46, 0, 0, 0, 0}, retrying[5:]...), retry, true},
		"what is no TLS":                {[]byte("SSH-2.0"), other, true},
		"a byte of a record in no TLS":  {[]byte{21, 0, 0, 0}, other, true},
		"the beginning of a switch":     {[]byte("HTTP/1.1 1"), switching, false},
		"a change to another protocol":  {[]byte("HTTP/1.1 101 S"), switching, true},
		"a retry that is cut in pieces": {[]byte{recordHandshake, 3, 3, 0, 1, 2}, retry, true},
	} {
		if got, known := beginning(withoutOtherRecords(tc.said)); known != tc.known || known && got != tc.want {
			t.Errorf("%s: %v, %t; want %v, %t", name, got, known, tc.want, tc.known)
		}
	}
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

// Whatever a client says, what reaches the host begins with a name that is its
// own, or is no request and no hello.
func FuzzClient(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"))
	f.Add(hello(f, "good.test"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the server says nothing
		var passed bytes.Buffer
		_ = New("good.test", 80).Client(ctx, bytes.NewReader(text), &passed)
		switch got := passed.String(); {
		case got == "", got[0] == recordHandshake:
		case !strings.Contains(strings.ToLower(got), "host: good.test") && !strings.Contains(got, "HTTP/1.0") &&
			!strings.Contains(strings.ToLower(got), "good.test"):
			t.Errorf("%q passes", got)
		}
	})
}

// A client of another protocol gets no answer, and one that was refused without another host reads of none.
func TestARefusalIsAnsweredInTheClear(t *testing.T) {
	for name, tc := range map[string]struct{ text, want, without string }{
		"another host":      {"GET / HTTP/1.1\r\nHost: Evil.test:80\r\n\r\n", "`claudebox-why evil.test` says more.\nThe user can let it in, outside: allow evil.test\n", "\x00"},
		"what is no host":   {"GET / HTTP/1.1\r\nHost: e vil\r\n\r\n", "another host: \"e vil\"", "claudebox-why"},
		"a bad request":     {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 403 ", "claudebox-why"},
		"something else":    {"SSH-2.0-x\r\n", "", "HTTP"},
		"TLS for another's": {string(hello(t, "evil.test")), "", "HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			g := New("good.test", 80)
			var no *Refused
			if err := g.Client(t.Context(), strings.NewReader(tc.text), io.Discard); !errors.As(err, &no) {
				t.Fatal(err)
			}
			got := string(g.Answer(no, func(host string) string { return "allow " + host }))
			if !strings.Contains(got, tc.want) || strings.Contains(got, tc.without) {
				t.Errorf("got %q", got)
			}
		})
	}
}
