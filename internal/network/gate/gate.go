package gate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"claudebox/internal/network/hostpattern"
)

// Refused is what a client said that it may not.
type Refused struct{ why string }

func (r *Refused) Error() string { return r.why }

func refusef(format string, args ...any) error { return &Refused{fmt.Sprintf(format, args...)} }

// The ports of the web. What is spoken there is known.
const (
	portHTTP  = 80
	portHTTPS = 443
)

// firstRead is how much is read of a client at first, in bytes.
const firstRead = 2 << 10

// Gate stands in one connection to a port of a host.
type Gate struct {
	name string
	port uint16

	begun chan struct{} // closed when first is known
	once  sync.Once
	first answer
}

// answer is what a server began with.
type answer int

const (
	other     answer = iota
	retry            // it wants a second client hello (RFC 8446, 4.1.4)
	switching        // it changes to the protocol that was asked for
)

// New makes the gate of a connection. The name is canonical.
func New(name string, port uint16) *Gate {
	return &Gate{name: name, port: port, begun: make(chan struct{})}
}

// Client passes what the client says on to the host as long as it has to be
// listened to. It returns nil when what comes next may pass unheard, io.EOF when
// the client has said all, and a [Refused] when it says what it may not; of that
// nothing has reached the host.
func (g *Gate) Client(ctx context.Context, client io.Reader, host io.Writer) error {
	// Nearly all is TLS, of which little has to be held: only a line of HTTP is long.
	c := &listener{gate: g, ctx: ctx, from: bufio.NewReaderSize(client, firstRead), to: host}
	first, err := c.from.Peek(1)
	if err != nil {
		return err
	}
	if first[0] == recordHandshake {
		return c.tls()
	}
	if c.helloOfOld(first[0]) {
		return refusef("a client hello of SSL 2, which names no host")
	}
	c.from = bufio.NewReaderSize(c.from, longestLine)
	http, err := c.speaksHTTP()
	switch {
	case err != nil:
		return err
	case g.port == portHTTPS:
		return refusef("what is no TLS")
	case http:
		return c.http()
	case g.port == portHTTP:
		return refusef("what is no HTTP")
	}
	return c.flush()
}

// Server passes what the server says on to the client until it is known what it
// began with. Then it returns nil. Its error is one of reading or writing.
func (g *Gate) Server(host io.Reader, client io.Writer) error {
	defer g.settle(other)
	var begin []byte
	buffer := make([]byte, 2<<10)
	for {
		n, err := host.Read(buffer)
		if n > 0 {
			begin = append(begin, buffer[:n]...)
			if a, known := beginning(begin); known {
				g.settle(a)
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err != nil || g.settled() {
			return err
		}
	}
}

func (g *Gate) settle(a answer) { g.once.Do(func() { g.first = a; close(g.begun) }) }

func (g *Gate) settled() bool {
	select {
	case <-g.begun:
		return true
	default:
		return false
	}
}

// answered waits until the server has begun.
func (g *Gate) answered(ctx context.Context) (answer, error) {
	select {
	case <-g.begun:
		return g.first, nil
	case <-ctx.Done():
		return other, ctx.Err()
	}
}

// retryRandom is what a server hello has in place of its random where it wants
// another client hello (RFC 8446, 4.1.3).
var retryRandom = []byte{
	0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
	0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
}

// beginning is what a server began with, once enough of it is there. A server
// may cut its hello into records of any size; one that does counts as wanting
// another hello, so that whatever follows is listened to.
func beginning(begin []byte) (a answer, known bool) {
	const switches, record, randomAt = "HTTP/1.1 101 ", 5, 5 + 4 + 2
	if begin[0] != recordHandshake {
		n := min(len(begin), len(switches))
		if string(begin[:n]) != switches[:n] {
			return other, true
		}
		return switching, n == len(switches)
	}
	if len(begin) < record {
		return other, false
	}
	if size := int(begin[3])<<8 | int(begin[4]); size < randomAt-record+len(retryRandom) {
		return retry, true
	}
	if len(begin) < randomAt+len(retryRandom) {
		return other, false
	}
	if bytes.Equal(begin[randomAt:randomAt+len(retryRandom)], retryRandom) {
		return retry, true
	}
	return other, true
}

// listener reads a client.
type listener struct {
	gate *Gate
	ctx  context.Context
	from *bufio.Reader
	to   io.Writer
}

// flush passes on what has been read already.
func (c *listener) flush() error {
	text, _ := c.from.Peek(c.from.Buffered())
	_, err := c.to.Write(text)
	_, _ = c.from.Discard(len(text))
	return err
}

// tls judges the name of each client hello in the clear. Between the first and
// what the server says to it, records that hold no handshake pass.
func (c *listener) tls() error {
	if err := c.hello(); err != nil {
		return err
	}
	for {
		kind, err := c.from.Peek(1)
		if err != nil {
			return err
		}
		if kind[0] == recordHandshake {
			break
		}
		if c.gate.settled() && c.gate.first != retry {
			return c.flush()
		}
		if err := c.record(); err != nil {
			return err
		}
	}
	begun, err := c.gate.answered(c.ctx)
	if err == nil && begun == retry {
		err = c.hello()
	}
	if err != nil {
		return err
	}
	return c.flush()
}

// record passes one record of TLS on.
func (c *listener) record() error {
	const header = 5
	begin, err := c.from.Peek(header)
	if err != nil {
		return err
	}
	size := int(begin[3])<<8 | int(begin[4])
	if size > longestRecord+256 {
		return refusef("what is no TLS")
	}
	_, err = io.CopyN(c.to, c.from, int64(header+size))
	return err
}

// hello passes a client hello on that names the host.
func (c *listener) hello() error {
	var begin []byte
	for {
		said, err := serverName(begin)
		switch {
		case err == nil:
			return c.pass(begin, said)
		case !errors.Is(err, errShort):
			return refusef("%s", err)
		}
		if _, err := c.from.Peek(1); err != nil {
			return err
		}
		n := min(c.from.Buffered(), nextPiece(begin))
		text, _ := c.from.Peek(n)
		begin = append(begin, text...)
		_, _ = c.from.Discard(n)
	}
}

// nextPiece is how much may be read of a hello without reading past it: its
// records are taken one header and one body at a time.
func nextPiece(begin []byte) int {
	const header = 5
	for at := 0; ; {
		if len(begin)-at < header {
			return header - (len(begin) - at)
		}
		size := header + int(begin[at+3])<<8 + int(begin[at+4])
		if len(begin)-at < size {
			return size - (len(begin) - at)
		}
		at += size
	}
}

func (c *listener) pass(hello []byte, said string) error {
	if name, err := hostpattern.Canonical(said); err != nil || name != c.gate.name {
		return refusef("TLS for another host: %s", said)
	}
	_, err := c.to.Write(hello)
	return err
}

// speaksHTTP reports whether the first line is one of HTTP, or could be taken
// for one by somebody.
func (c *listener) speaksHTTP() (bool, error) {
	for n := 1; n < longestLine; n++ {
		text, err := c.from.Peek(n)
		if err != nil {
			return false, nil //nolint:nilerr // who says so little and ends says no HTTP
		}
		switch last := text[n-1]; {
		case n == 1 && (last == '\r' || last == '\n' || last == ' '):
			return true, nil
		case last == '\n':
			return strings.Contains(strings.ToUpper(string(text)), "HTTP/") || isSimple(string(text)), nil
		case n == 1 && !isTokenByte(last), last < ' ' && last != '\t' && last != '\r':
			return false, nil
		}
	}
	return true, nil
}

// isSimple reports whether a line is a request of HTTP/0.9, which has no version
// and no host: what comes behind it could be one that is taken for HTTP/1.
func isSimple(line string) bool {
	method, target, _ := strings.Cut(line, " ")
	return isToken(method) && method == strings.ToUpper(method) && strings.HasPrefix(target, "/")
}

// helloOfOld reports whether a client begins as one of SSL 2 does (RFC 5246, E.2).
// Servers of today still take it, for TLS.
func (c *listener) helloOfOld(first byte) bool {
	const longLength, kindAt, versionAt = 0x80, 2, 3
	if first&longLength == 0 {
		return false
	}
	begin, err := c.from.Peek(kindAt + 1)
	if err != nil || begin[kindAt] != clientHello {
		return false
	}
	begin, err = c.from.Peek(versionAt + 2)
	return err == nil && (begin[versionAt] == 3 || begin[versionAt] == 0 && begin[versionAt+1] == 2)
}

// http passes requests on, each of which is for the host, and returns nil when
// the server has changed to a protocol that the first of them asked for.
func (c *listener) http() error {
	for first := true; ; first = false {
		text, err := c.head()
		if err != nil {
			return err
		}
		h, err := parseHead(text)
		if err == nil {
			err = h.judge(c.gate.name)
		}
		if err != nil {
			return err
		}
		content, err := h.framing()
		if err != nil {
			return err
		}
		upgrade := h.upgrade() != "" && !strings.Contains(h.upgrade(), "h2c")
		if upgrade && !first {
			return refusef("a change of protocol in the middle of a connection")
		}
		if _, err := c.to.Write(h.bytes()); err != nil {
			return err
		}
		if err := c.content(content); err != nil {
			return err
		}
		if !upgrade {
			continue
		}
		if begun, err := c.gate.answered(c.ctx); err != nil {
			return err
		} else if begun == switching {
			return c.flush()
		}
	}
}

// head reads up to and with the empty line, which it leaves out.
func (c *listener) head() (string, error) {
	var text strings.Builder
	for {
		line, err := c.from.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) || text.Len()+len(line) > longestHead {
			return "", refusef("a request whose head is longer than 32 KiB")
		}
		if err != nil {
			if text.Len()+len(line) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return "", err
		}
		if !bytes.HasSuffix(line, []byte("\r\n")) {
			return "", refusef("a request whose lines do not end as HTTP has it")
		}
		if len(line) == 2 && text.Len() > 0 {
			return strings.TrimSuffix(text.String(), "\r\n"), nil
		}
		text.Write(line)
	}
}

// content passes a request's body on.
func (c *listener) content(b body) error {
	if b.chunked {
		return c.chunks()
	}
	_, err := io.CopyN(c.to, c.from, b.length)
	return err
}

// chunks passes a chunked body on (RFC 9112, 7.1), each size written anew.
// Extensions and trailers are refused: nobody needs them, and readers differ
// on them.
func (c *listener) chunks() error {
	for {
		line, err := c.from.ReadSlice('\n')
		if err != nil {
			return err
		}
		digits, ended := strings.CutSuffix(string(line), "\r\n")
		n, ok := hexadecimal(digits)
		if !ended || !ok {
			return refusef("a chunk of a request without a plain size")
		}
		if _, err := fmt.Fprintf(c.to, "%x\r\n", n); err != nil {
			return err
		}
		if _, err := io.CopyN(c.to, c.from, n); err != nil {
			return err
		}
		var end [2]byte
		if _, err := io.ReadFull(c.from, end[:]); err != nil {
			return err
		}
		if string(end[:]) != "\r\n" {
			return refusef("a chunk that is longer than it says, or trailers")
		}
		if _, err := c.to.Write(end[:]); err != nil || n == 0 {
			return err
		}
	}
}

// hexadecimal is the number of a chunk's size, which has digits alone.
func hexadecimal(digits string) (n int64, ok bool) {
	if digits == "" || len(digits) > 15 {
		return 0, false
	}
	for _, c := range []byte(strings.ToLower(digits)) {
		i := strings.IndexByte("0123456789abcdef", c)
		if i < 0 {
			return 0, false
		}
		n = n<<4 | int64(i)
	}
	return n, true
}
